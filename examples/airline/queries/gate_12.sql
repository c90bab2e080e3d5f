-- What the agent at gate 12 sees: bags and passengers of the flights that leave there.
SELECT fl.ts, fl.num, bg.status AS bag, ci.status AS passenger
FROM flights [RANGE 5 MINUTES] AS fl
JOIN baggage [RANGE 1 MINUTE] AS bg ON fl.num = bg.flight
JOIN check_ins [RANGE 1 MINUTE] AS ci ON fl.num = ci.flight
WHERE fl.gate = 12
