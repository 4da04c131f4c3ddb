case 1: a
