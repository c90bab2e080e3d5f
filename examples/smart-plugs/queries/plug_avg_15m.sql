SELECT window_end AS at, house, household, plug, avg(value) AS avg_load
FROM TABLE(HOP(TABLE readings, DESCRIPTOR(ts), INTERVAL 1 MINUTE, INTERVAL 15 MINUTES))
WHERE property = 'load'
GROUP BY window_start, window_end, house, household, plug
