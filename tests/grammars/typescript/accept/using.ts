using a: Disposable = open(), b = c;
await using d = e;
for (using h of i) ;
using = 1;
