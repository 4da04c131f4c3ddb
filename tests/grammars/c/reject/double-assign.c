int x = = 3;
