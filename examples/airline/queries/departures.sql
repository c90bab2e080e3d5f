-- The board in the hall: status, check-ins and weather of every flight.
SELECT fl.ts, fl.num, fl.status, wr.forecast, ci.status AS passenger
FROM flights [RANGE 5 MINUTES] AS fl
JOIN weather [RANGE 5 MINUTES] AS wr ON fl.dest = wr.city
JOIN check_ins [RANGE 1 MINUTE] AS ci ON fl.num = ci.flight
