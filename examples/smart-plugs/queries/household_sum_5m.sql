SELECT window_end AS at, house, household, sum(value) AS watt_seconds
FROM TABLE(HOP(TABLE readings, DESCRIPTOR(ts), INTERVAL 10 SECONDS, INTERVAL 5 MINUTES))
WHERE property = 'load'
GROUP BY window_start, window_end, house, household
