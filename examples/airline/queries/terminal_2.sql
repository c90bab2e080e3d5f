-- The displays of terminal 2: flights with the weather where they go, bags and check-ins.
SELECT fl.ts, fl.num, fl.gate, bg.area, ci.status, wr.forecast
FROM flights [RANGE 5 MINUTES] AS fl
JOIN weather [RANGE 5 MINUTES] AS wr ON fl.dest = wr.city
JOIN check_ins [RANGE 1 MINUTE] AS ci ON fl.num = ci.flight
JOIN baggage [RANGE 1 MINUTE] AS bg ON fl.num = bg.flight
WHERE fl.terminal = 2
