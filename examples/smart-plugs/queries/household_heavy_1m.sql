-- Alarm of the fuse box: 30 readings or more above 500 W within one minute.
SELECT window.end AS at, house, household, count(*) AS heavy, max(value) AS peak
FROM readings
WHERE property = 'load' AND value > 500
GROUP BY window(ts, '1 minute', '5 seconds'), house, household
HAVING count(*) >= 30
