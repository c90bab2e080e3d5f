SELECT window_end AS at, house, household, plug, max(value) AS peak
FROM readings [RANGE 1 MINUTE SLIDE 5 SECONDS]
WHERE property = 'load'
GROUP BY house, household, plug
