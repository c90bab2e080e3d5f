SELECT window_end AS at, house, household, stddev(value) AS restless
FROM readings [RANGE 15 MINUTES SLIDE 1 MINUTE]
WHERE property = 'load'
GROUP BY house, household
