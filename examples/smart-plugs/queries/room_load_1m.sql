-- Load by room: the static table names where a plug is.
SELECT window.end AS at, p.house, p.room, sum(r.value) / 60 AS watts
FROM readings AS r
JOIN plugs AS p ON p.house = r.house AND p.household = r.household AND p.plug = r.plug
WHERE r.property = 'load'
GROUP BY window(r.ts, '1 minute', '10 seconds'), p.house, p.room
