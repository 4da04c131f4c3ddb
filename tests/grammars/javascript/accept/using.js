using a = open(), b = c;
await using d = e
{ using f = g; }
for (using h of i) ;
for await (using j of k) ;
for (await using l of m) ;
for (using n = o; n; ) ;
using = 1
using(p)
using[q] = using + 1
let using
x = /[\p{L}--[a-z]]/v, /[\q{ab|c}&&[a-z]]/dgv, /(?i-s:a)/
