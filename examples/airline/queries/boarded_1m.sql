-- How many passengers boarded at each terminal, minute by minute: a window over a join.
SELECT window.start, fl.terminal, count(*) AS boarded
FROM flights AS fl
JOIN check_ins AS ci ON fl.num = ci.flight
  AND ci.ts BETWEEN fl.ts AND fl.ts + INTERVAL 2 MINUTES
WHERE ci.status = 'boarded'
GROUP BY window(ci.ts, '1 minute'), fl.terminal
