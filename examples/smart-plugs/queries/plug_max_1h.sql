SELECT window_end AS at, house, household, plug, max(value) AS peak
FROM TABLE(HOP(TABLE readings, DESCRIPTOR(ts), INTERVAL 1 MINUTE, INTERVAL 1 HOUR))
WHERE property = 'load'
GROUP BY window_start, window_end, house, household, plug
