-- How restless a plug is; a motor that wears out shows here first.
SELECT window.end AS at, house, household, plug, stddev(value) AS restless
FROM readings
WHERE property = 'load'
GROUP BY window(ts, '1 minute', '5 seconds'), house, household, plug
