BEGIN;
INSERT INTO t (a, b) VALUES (1, 'x'), (-2, DEFAULT) ON CONFLICT (a) DO UPDATE SET b = excluded.b WHERE t.b <> 'y' RETURNING *;
INSERT IGNORE INTO `t` SET a=1, b=-2;
REPLACE INTO t SELECT * FROM u;
UPDATE t SET a = a + 1, (b, c) = (SELECT 1, 2) FROM u WHERE t.id = u.id;
DELETE FROM t USING u WHERE t.id = u.id;
COPY t (a, b) FROM stdin;
1	don't; stop
2	--
\.
\echo done
COMMIT;
