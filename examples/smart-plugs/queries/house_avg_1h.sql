SELECT window_end AS at, house, avg(value) AS avg_load
FROM TABLE(HOP(TABLE readings, DESCRIPTOR(ts), INTERVAL 1 MINUTE, INTERVAL 1 HOUR))
WHERE property = 'load'
GROUP BY window_start, window_end, house
