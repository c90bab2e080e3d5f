-- The largest total of one plug, per household.
SELECT window_end AS at, house, household, max(total) AS top_total
FROM (SELECT window_start, window_end, house, household, plug, sum(value) AS total
      FROM readings [RANGE 5 MINUTES SLIDE 1 MINUTE]
      WHERE property = 'load'
      GROUP BY house, household, plug) AS per_plug
GROUP BY window_start, window_end, house, household
