SELECT window.end AS at, house, avg(value) AS avg_load
FROM readings
WHERE property = 'load'
GROUP BY window(ts, '1 minute', '1 second'), house
