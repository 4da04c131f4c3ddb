BEGIN_DECLS
PyMODINIT_FUNC PyInit_x(void);
MODULE_LICENSE("GPL")
static FOO(bar) int baz EXPORT(1);
DEFINE_TEST(name, x) { return; }
int f(void) {
	Py_BEGIN_ALLOW_THREADS
	x = 1;
	Py_END_ALLOW_THREADS
	list_for_each(pos, head) { f(pos); }
	ASSERT(x)
	UNUSED int y;
	return 0;
}
END_DECLS
