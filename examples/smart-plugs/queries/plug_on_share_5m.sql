-- The share of five minutes in which the plug was in use (more than 10 W).
SELECT window.end AS at, house, household, plug,
       avg(CASE WHEN value > 10 THEN 1.0 ELSE 0.0 END) AS on_share
FROM readings
WHERE property = 'load'
GROUP BY window(ts, '5 minutes', '1 minute'), house, household, plug
