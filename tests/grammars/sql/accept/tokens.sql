GRANT ALL ON *.* TO 'u'@'%';
EXPLAIN SELECT count(*) FROM t;
\gset x_
set a = :'b';
