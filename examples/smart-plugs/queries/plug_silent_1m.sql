SELECT window.end AS at, house, household, plug, count(*) AS readings
FROM readings
GROUP BY window(ts, '1 minute'), house, household, plug
HAVING count(*) < 120
