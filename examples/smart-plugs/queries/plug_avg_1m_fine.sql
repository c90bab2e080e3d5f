-- The same every second: input of the anomaly model.
SELECT window_end AS at, house, household, plug, avg(value) AS avg_load
FROM readings [RANGE 1 MINUTE SLIDE 1 SECOND]
WHERE property = 'load'
GROUP BY house, household, plug
