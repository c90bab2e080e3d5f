SELECT window.end AS at, house, household, plug, max(value) - min(value) AS kwh
FROM readings
WHERE property = 'work'
GROUP BY window(ts, '1 hour', '5 minutes'), house, household, plug
