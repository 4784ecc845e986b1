INSERT INTO customers (email, name)
SELECT 'customer' || n || '@example.com', 'Customer ' || n FROM generate_series(1, 100) AS n;
INSERT INTO orders (customer_id, total, details)
SELECT 1 + n % 100, n, jsonb_build_object('line', n) FROM generate_series(1, 300) AS n;
ANALYZE;
