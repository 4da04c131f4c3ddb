import aas b
