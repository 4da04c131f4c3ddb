#include <a.h>
#define A \
	1
int f(void)
{
	return 0; // x
}
