using a;
