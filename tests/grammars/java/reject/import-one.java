import a;
