-- How often each plug was near its own peak: loads of the last 5 minutes above 90 % of their maximum.
SELECT a.window_start, a.window_end, a.house, a.household, a.plug, count(*) AS n
FROM readings [RANGE 5 MINUTES SLIDE 1 SECOND] AS a
WHERE a.property = 'load'
  AND a.value > 0.9 * (
    SELECT max(b.value)
    FROM readings [RANGE 5 MINUTES SLIDE 1 SECOND] AS b
    WHERE b.property = 'load' AND b.house = a.house AND b.household = a.household AND b.plug = a.plug
  )
GROUP BY a.house, a.household, a.plug
