int f(
#ifdef A
	int a,
#endif
	int b) /* x */
#if B
	__attribute__((noreturn))
#endif
{ if (a
#if C
	&& b
#endif
	) return 1;
	return a \
		+ b; }
