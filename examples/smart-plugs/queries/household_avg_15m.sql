SELECT window.end AS at, house, household, avg(value) AS avg_load
FROM readings
WHERE property = 'load'
GROUP BY window(ts, '15 minutes', '1 minute'), house, household
