-- The same as an alarm: only the windows in which readings are missing.
SELECT window.end AS at, house, household, plug, count(*) AS readings
FROM readings
GROUP BY window(ts, '1 minute', '30 seconds'), house, household, plug
HAVING count(*) < 120
