int x; /* open
