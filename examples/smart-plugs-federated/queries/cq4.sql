-- Mean load of each plug: that of the last 5 minutes beside that of the last minute.
SELECT m5.window_start, m5.window_end, m5.house, m5.household, m5.plug, m5.mean AS mean5, m1.mean AS mean1
FROM (
  SELECT house, household, plug, avg(value) AS mean
  FROM readings [RANGE 5 MINUTES SLIDE 1 SECOND]
  WHERE property = 'load'
  GROUP BY house, household, plug
) AS m5
JOIN (
  SELECT house, household, plug, avg(value) AS mean
  FROM readings [RANGE 1 MINUTE SLIDE 1 SECOND]
  WHERE property = 'load'
  GROUP BY house, household, plug
) AS m1
ON m5.house = m1.house AND m5.household = m1.household AND m5.plug = m1.plug
