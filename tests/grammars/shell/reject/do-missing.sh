while a; b; done
