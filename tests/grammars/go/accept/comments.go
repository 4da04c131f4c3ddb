package p

func /* a */ f( /* b */ x int, // c
	y int, /* d
	e */) /* f */ { /* g */ } // h

var a = 1 /* i
*/ var b = 2 /**/ ; /***/ var c /* j */ = 3
