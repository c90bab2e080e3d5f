-- Energy of five minutes, from the meter: the difference of its last and first reading.
SELECT window_end AS at, house, household, plug, max(value) - min(value) AS kwh
FROM readings [RANGE 5 MINUTES SLIDE 1 MINUTE]
WHERE property = 'work'
GROUP BY house, household, plug
