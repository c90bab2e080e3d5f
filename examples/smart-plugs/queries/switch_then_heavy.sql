-- CQL: readings above 200 W in the last 20 seconds beside switches of the last 5 seconds.
SELECT s.ts AS switched_at, s.command, r.ts AS read_at, r.house, r.household, r.plug, r.value
FROM readings [RANGE 20 SECONDS] AS r, switches [RANGE 5 SECONDS] AS s
WHERE r.house = s.house AND r.household = s.household AND r.plug = s.plug
  AND r.property = 'load' AND r.value > 200
