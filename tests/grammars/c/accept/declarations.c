typedef unsigned long long u64, *pu64;
static const char *const names[] = { "a", [3] = "b" "c", [4 ... 6] = PRIu64 "d", };
struct point { int x, y; unsigned f : 3, : 2; struct { int a; }; } __attribute__((packed)) origin = { .x = 1, .y = -2 };
enum color { RED, GREEN = 1 << 3, BLUE, };
union u;
extern int (*table[3])(int, const char *, ...);
void (*signal(int sig, void (*func)(int)))(int);
size_t len = sizeof(struct point) * 3 / sizeof *p, other;
T *p, **q, r[2][3];
int old(a, b) int a; char *b; { return a; }
static inline __attribute__((always_inline)) int f(int n, int a[static n], char *restrict s) { return a[0]; }
_Static_assert(sizeof(int) == 4, "int");
int x asm("y");
main() { return 0; }
extern "C" {
int g(void);
}
;
