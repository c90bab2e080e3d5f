-- Who has checked in for which flight.
SELECT fl.ts, fl.num, fl.status AS flight, ci.passenger, ci.status
FROM flights [RANGE 5 MINUTES] AS fl
JOIN check_ins [RANGE 1 MINUTE] AS ci ON fl.num = ci.flight
