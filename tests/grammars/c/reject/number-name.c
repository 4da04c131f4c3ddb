int 3x;
