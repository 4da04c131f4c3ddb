const a = `x ${ b + `${ { c: `d` }.c } $ $$ \` \${` } y`
tag`a ${1} b ${ 2 } c`.d`e`
const s = `line
 two ${
   // comment
   x
 }`
`$`
;`$${a}`
