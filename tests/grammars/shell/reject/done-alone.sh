a; done
