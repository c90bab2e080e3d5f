-- Mean load of each plug over the last 1, 3 and 5 minutes, side by side.
SELECT m1.window_start, m1.window_end, m1.house, m1.household, m1.plug,
       m1.mean AS mean1, m3.mean AS mean3, m5.mean AS mean5
FROM (
  SELECT house, household, plug, avg(value) AS mean
  FROM readings [RANGE 1 MINUTE SLIDE 1 SECOND]
  WHERE property = 'load'
  GROUP BY house, household, plug
) AS m1
JOIN (
  SELECT house, household, plug, avg(value) AS mean
  FROM readings [RANGE 3 MINUTES SLIDE 1 SECOND]
  WHERE property = 'load'
  GROUP BY house, household, plug
) AS m3
ON m1.house = m3.house AND m1.household = m3.household AND m1.plug = m3.plug
JOIN (
  SELECT house, household, plug, avg(value) AS mean
  FROM readings [RANGE 5 MINUTES SLIDE 1 SECOND]
  WHERE property = 'load'
  GROUP BY house, household, plug
) AS m5
ON m1.house = m5.house AND m1.household = m5.household AND m1.plug = m5.plug
