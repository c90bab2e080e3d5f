SELECT window_end AS at, house, sum(value) AS watt_seconds
FROM readings [RANGE 1 HOUR SLIDE 1 MINUTE]
WHERE property = 'load'
GROUP BY house
