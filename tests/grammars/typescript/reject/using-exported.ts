export using a = b;
