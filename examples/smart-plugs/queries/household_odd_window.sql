-- A range that is not a multiple of the slide: 100 seconds every 30.
SELECT window_end AS at, house, household, avg(value) AS avg_load, max(value) AS peak
FROM readings [RANGE 100 SECONDS SLIDE 30 SECONDS]
WHERE property = 'load'
GROUP BY house, household
