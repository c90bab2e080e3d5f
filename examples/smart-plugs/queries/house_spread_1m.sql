-- How unlike the households of a house are: from the quietest average to the busiest.
SELECT window_end AS at, house, max(avg_load) - min(avg_load) AS spread
FROM (SELECT window_start, window_end, house, household, avg(value) AS avg_load
      FROM readings [RANGE 1 MINUTE SLIDE 10 SECONDS]
      WHERE property = 'load'
      GROUP BY house, household) AS per_household
GROUP BY window_start, window_end, house
