if (x) y;
