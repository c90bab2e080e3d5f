-- The busiest plug of each household: the largest sum of loads that one of its plugs had in the last 5 minutes.
SELECT s.window_start, s.window_end, s.house, s.household, max(s.total) AS top
FROM (
  SELECT house, household, plug, sum(value) AS total
  FROM readings [RANGE 5 MINUTES SLIDE 1 SECOND]
  WHERE property = 'load'
  GROUP BY house, household, plug
) AS s
GROUP BY s.house, s.household
