typedef T (*fn)(T a, T *b, T c[], T (*d)(T e, ...), const T *const f, T *restrict g, T *h[]);
int f(T (*cmp)(const void *, const void *), T *(*get)(T key))
{
	T (*p)(T a, int b) = g, **q;
	T *(*r[2])(T);
	int (*s)(T x) = (int (*)(T x))0;
	return (*p)(a, va_arg(ap, T *)) + sizeof(T *[3]) + f((T const *)x, (T **)y, (struct s *)z);
}
