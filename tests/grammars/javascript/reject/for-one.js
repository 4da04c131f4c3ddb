for (a) b
