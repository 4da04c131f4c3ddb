int x = a +* ;
