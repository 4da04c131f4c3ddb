-- A query of nearly everything.
WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL SELECT n+1 FROM t WHERE n < 100)
SELECT DISTINCT a.id, b."Name" AS label, count(*) FILTER (WHERE b.x IS NOT NULL) AS n,
       sum(b.price * -1.5e3) OVER (PARTITION BY a.id ORDER BY b.day DESC NULLS LAST ROWS BETWEEN 1 PRECEDING AND CURRENT ROW),
       CASE WHEN a.x = 1 THEN 'one' ELSE E'it\'s' || 'b''c' END, data->>'key', tags[1:2], ARRAY[1, 2]::int[],
       cast(now() AS timestamp with time zone), interval '1 day', extract(year from a.day)
FROM schema.a LEFT JOIN b ON a.id = b.a_id AND b.y NOT IN (SELECT y FROM c) /* block */, LATERAL f(a.id) AS g(u, v)
WHERE a.day BETWEEN '2020-01-01' AND current_date AND (a.name ILIKE '%x%' OR NOT EXISTS (SELECT 1 FROM d WHERE d.id = a.id))
GROUP BY a.id, 2 HAVING count(*) > 1
UNION SELECT 1, 'x', 2, 3, '', '', NULL, NULL, NULL, NULL, 5
ORDER BY 1 LIMIT 10 OFFSET 5;
select 1
