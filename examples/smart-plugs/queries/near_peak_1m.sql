-- Readings above 90 % of the window's own maximum.
SELECT r.window_end AS at, r.ts, r.house, r.household, r.plug, r.value
FROM readings [RANGE 1 MINUTE SLIDE 1 MINUTE] AS r
WHERE r.property = 'load'
  AND r.value > 0.9 * (SELECT max(p.value) FROM readings [RANGE 1 MINUTE SLIDE 1 MINUTE] AS p
                       WHERE p.property = 'load')
