SELECT window.end AS at, house, sum(value) / 300 / 1000 AS kw
FROM readings
WHERE property = 'load'
GROUP BY window(ts, '5 minutes', '10 seconds'), house
