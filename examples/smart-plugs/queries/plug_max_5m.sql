SELECT window.end AS at, house, household, plug, max(value) AS peak
FROM readings
WHERE property = 'load'
GROUP BY window(ts, '5 minutes', '30 seconds'), house, household, plug
