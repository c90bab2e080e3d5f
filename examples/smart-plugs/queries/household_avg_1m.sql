SELECT window_end AS at, house, household, avg(value) AS avg_load
FROM readings [RANGE 1 MINUTE SLIDE 5 SECONDS]
WHERE property = 'load'
GROUP BY house, household
