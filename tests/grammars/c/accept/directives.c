#ifndef X_H
#define X_H
#include <stdio.h>
# define MAX(a, b) \
	((a) > (b) ? (a) : (b)) /* a comment
	that goes on */
#define URL "http://x/*" // y
#error don't
#if 0
#endif
#endif