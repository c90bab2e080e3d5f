-- The whole grid segment.
SELECT window_end AS at, sum(value) / 60 / 1000 AS kw, count(*) AS readings
FROM readings [RANGE 1 MINUTE SLIDE 5 SECONDS]
WHERE property = 'load'
