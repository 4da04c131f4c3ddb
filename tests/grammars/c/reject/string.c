char *s = "a
b";
