-- Readings above 10 W: nobody at home gives none.
SELECT window.end AS at, house, household, count(*) AS active_readings
FROM readings
WHERE property = 'load' AND value > 10
GROUP BY window(ts, '1 minute', '10 seconds'), house, household
