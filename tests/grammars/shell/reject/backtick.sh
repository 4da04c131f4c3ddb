echo `a
