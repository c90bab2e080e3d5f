-- Seats sold to where flights go, with the weather there.
SELECT s.ts, s.dest, s.seats, fl.num, wr.forecast
FROM sales [RANGE 1 MINUTE] AS s
JOIN flights [RANGE 5 MINUTES] AS fl ON s.dest = fl.dest
JOIN weather [RANGE 5 MINUTES] AS wr ON fl.dest = wr.city
