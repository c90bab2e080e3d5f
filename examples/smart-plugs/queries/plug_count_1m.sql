-- Readings a minute; fewer than 120 (a load and a work each second) means a plug that lost its radio.
SELECT window_start, window_end, house, household, plug, count(*) AS readings
FROM TABLE(TUMBLE(TABLE readings, DESCRIPTOR(ts), INTERVAL 1 MINUTE))
GROUP BY window_start, window_end, house, household, plug
