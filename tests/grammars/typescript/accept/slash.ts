var a = b / c / d;
var r = /[/\]]+\/(?<y>\d{4})/gu.test(s) / 2;
a = b
/ c / d
if (x) (/re/).exec(y)
x = a / (b) / c, /=/.test(d)
y = a++ / 2
z = `${a / b}` / 2
w = a //comment
 / 2
f(/a/, [/b/], !/c/, { d: /e/ })
function q() { return /x/ }
v = a /* c */ / /* d */ b
n = 10 / 2 /1.5
