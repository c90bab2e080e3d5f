SELECT window_start, window_end, house, count(*) AS readings
FROM TABLE(TUMBLE(TABLE readings, DESCRIPTOR(ts), INTERVAL 5 MINUTES))
GROUP BY window_start, window_end, house
