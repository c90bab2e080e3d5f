-- Readings more than three times the average of their own house in the same window.
SELECT r.window_end AS at, r.house, r.household, r.plug, r.value
FROM readings [RANGE 5 MINUTES SLIDE 5 MINUTES] AS r
WHERE r.property = 'load'
  AND r.value > 3 * (SELECT avg(p.value) FROM readings [RANGE 5 MINUTES SLIDE 5 MINUTES] AS p
                     WHERE p.property = 'load' AND p.house = r.house)
