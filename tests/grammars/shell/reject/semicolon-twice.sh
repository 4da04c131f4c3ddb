a; ; b
