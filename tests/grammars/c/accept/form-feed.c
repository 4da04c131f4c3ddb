int a;

int b;
