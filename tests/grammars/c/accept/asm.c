asm(".globl x");
register int r asm("eax") __attribute__((unused)) = 1, s asm("ebx");
int g(void) asm("h") __attribute__((noreturn));
int f(void)
{
	if (a)
		__asm__("bswap %0" : "=r" (b) : "0" (x));
	else
		asm goto ("jmp %l0" :::: out);
	map_foreach_value(map, x, { i++; free(x); });
out:
	return 0;
}
