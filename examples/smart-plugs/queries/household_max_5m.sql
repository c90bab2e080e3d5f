SELECT window_end AS at, house, household, max(value) AS peak
FROM readings [RANGE 5 MINUTES SLIDE 30 SECONDS]
WHERE property = 'load'
GROUP BY house, household
