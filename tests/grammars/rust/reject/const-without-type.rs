const X = 1;
