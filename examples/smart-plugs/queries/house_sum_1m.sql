-- The dashboard's line: kW of the house, every second.
SELECT window_end AS at, house, sum(value) / 60 / 1000 AS kw
FROM readings [RANGE 1 MINUTE SLIDE 1 SECOND]
WHERE property = 'load'
GROUP BY house
