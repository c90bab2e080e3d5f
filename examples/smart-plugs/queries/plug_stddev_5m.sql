SELECT window_end AS at, house, household, plug, stddev(value) AS restless, avg(value) AS avg_load
FROM readings [RANGE 5 MINUTES SLIDE 1 MINUTE]
WHERE property = 'load'
GROUP BY house, household, plug
