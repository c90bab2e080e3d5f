SELECT window_end AS at, house, max(value) AS peak, min(value) AS least
FROM readings [RANGE 15 MINUTES SLIDE 30 SECONDS]
WHERE property = 'load'
GROUP BY house
