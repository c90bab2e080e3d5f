SELECT window.end AS at, house, household, plug, avg(value) AS avg_load
FROM readings
WHERE property = 'load'
GROUP BY window(ts, '5 minutes', '30 seconds'), house, household, plug
