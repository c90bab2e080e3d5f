-- What was sold in the last five minutes: one stream, so nothing to place.
SELECT window_start, window_end, count(*) AS sales, sum(price) AS turnover
FROM sales [RANGE 5 MINUTES SLIDE 1 MINUTE]
