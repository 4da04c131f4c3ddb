package p
/* open
