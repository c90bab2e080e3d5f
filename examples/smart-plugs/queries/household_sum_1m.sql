SELECT window.end AS at, house, household, sum(value) AS watt_seconds
FROM readings
WHERE property = 'load'
GROUP BY window(ts, '1 minute', '10 seconds'), house, household
