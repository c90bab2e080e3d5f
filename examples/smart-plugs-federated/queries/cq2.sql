-- How often each plug was above its own average: loads of the last 5 minutes above their mean.
SELECT a.window_start, a.window_end, a.house, a.household, a.plug, count(*) AS n
FROM readings [RANGE 5 MINUTES SLIDE 1 SECOND] AS a
WHERE a.property = 'load'
  AND a.value > (
    SELECT avg(b.value)
    FROM readings [RANGE 5 MINUTES SLIDE 1 SECOND] AS b
    WHERE b.property = 'load' AND b.house = a.house AND b.household = a.household AND b.plug = a.plug
  )
GROUP BY a.house, a.household, a.plug
