-- How many plugs were in use.
SELECT window_end AS at, house, household, approx_count_distinct(plug) AS plugs_in_use
FROM readings [RANGE 5 MINUTES SLIDE 1 MINUTE]
WHERE property = 'load' AND value > 10
GROUP BY house, household
