-- Average load of each plug over the last minute, every 10 seconds.
SELECT window.end AS at, house, household, plug, avg(value) AS avg_load
FROM readings
WHERE property = 'load'
GROUP BY window(ts, '1 minute', '10 seconds'), house, household, plug
