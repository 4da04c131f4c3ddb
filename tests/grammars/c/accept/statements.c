int f(int c) {
	int i = 0, *p = &i, a[] = {1, 2, 3};
	T x; T *y = NULL; struct s *z; const T w = (T){ .a = 1 };
	a * b; f(x); (void)c; i++; --i; *p = i + +i - -i & ~i;
	if (c) return 1; else if (!c) { } else ;
	while (i --> 0) continue;
	do { break; } while (0);
	for (int j = 0; j < 3; j++) for (;;) ;
	for (i = 0, c = 1; ; ) goto end;
	switch (c) { case 1: case 'a' ... 'z': f(2); break; default: ; }
	x = a ? b : c ? d : e, i <<= 2;
	y = p->q.r[1](2)++ / *p / 3.5e-2f + 0x1FUL + L'x' + '\'' + (int)-1 + (char)~3 + sizeof(int);
	__asm__ volatile ("mov %0, %1" : "=r"(i) : [in] "r" (c) : "memory");
	v = ({ int t = 1; t; });
	goto *labels[i];
	s = "a" "b\"\
" L"c" FMT "d";
	g((void *)0, (const struct s *)p, va_arg(ap, unsigned char *), int);
	k = _Generic((x), int: 1, default: 2);
end:
	return (i) / 2;
}
