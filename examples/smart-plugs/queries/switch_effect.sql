-- What a plug draws in the ten seconds after somebody switched it.
SELECT s.ts AS switched_at, s.command, r.ts AS read_at, r.house, r.household, r.plug, r.value
FROM switches AS s
JOIN readings AS r
  ON r.house = s.house AND r.household = s.household AND r.plug = s.plug
 AND r.ts BETWEEN s.ts AND s.ts + INTERVAL 10 SECONDS
WHERE r.property = 'load'
