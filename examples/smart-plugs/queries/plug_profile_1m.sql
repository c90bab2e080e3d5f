-- Everything the forecasting model reads about a plug, in one row.
SELECT window_start, window_end, house, household, plug,
       avg(value) AS avg_load, min(value) AS min_load, max(value) AS max_load,
       stddev(value) AS sd_load, count(value) AS readings
FROM TABLE(TUMBLE(TABLE readings, DESCRIPTOR(ts), INTERVAL 1 MINUTE))
WHERE property = 'load'
GROUP BY window_start, window_end, house, household, plug
