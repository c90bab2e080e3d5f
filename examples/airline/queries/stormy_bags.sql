-- Bags that wait for flights into a storm.
SELECT fl.ts, fl.num, bg.bag, bg.area, wr.wind
FROM flights [RANGE 5 MINUTES] AS fl
JOIN weather [RANGE 5 MINUTES] AS wr ON fl.dest = wr.city
JOIN baggage [RANGE 1 MINUTE] AS bg ON fl.num = bg.flight
WHERE wr.forecast = 'storm' AND bg.status = 'waiting'
