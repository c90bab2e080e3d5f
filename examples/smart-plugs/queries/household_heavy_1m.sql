-- Alarm of the fuse box: plugs above 500 W, two minutes of readings or more.
SELECT window.end AS at, house, household, count(*) AS heavy, max(value) AS peak
FROM readings
WHERE property = 'load' AND value > 500
GROUP BY window(ts, '1 minute', '5 seconds'), house, household
HAVING count(*) >= 30
