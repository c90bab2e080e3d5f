-- What the plug draws when nothing is on: the least load of five minutes.
SELECT window_end AS at, house, household, plug, min(value) AS standby
FROM readings [RANGE 5 MINUTES SLIDE 30 SECONDS]
WHERE property = 'load'
GROUP BY house, household, plug
