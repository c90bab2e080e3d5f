-- Cost of the last five minutes by each house's own tariff, in cents.
SELECT window_end AS at, r.house, sum(r.value) / 3600000 * max(t.cents_per_kwh) AS cents
FROM readings [RANGE 5 MINUTES SLIDE 1 MINUTE] AS r
LEFT JOIN tariffs AS t ON t.house = r.house
WHERE r.property = 'load'
GROUP BY r.house
