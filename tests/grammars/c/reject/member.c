int x = a.3;
