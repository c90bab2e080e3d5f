SELECT window_end AS at, house, household, plug, avg(value) AS avg_load
FROM readings [RANGE 1 HOUR SLIDE 1 MINUTE]
WHERE property = 'load'
GROUP BY house, household, plug
