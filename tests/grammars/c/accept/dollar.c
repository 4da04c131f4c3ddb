int a$b = $c;
