/* a */ var /* b */ x /* c */ = /* d */ 1 /* e
f */ var y = 2 // g
/** * / **/ /***/
f(/* h */)
f(/* i */ a, // j
  b /* k */,
  /* l */ c
  // m
)
return_(/* a */) /* b */ ; /* c */
a // x
  // y
  .b()
if (a) // b
  c
else // d
  e
var z = { // a
  b: 1, // c
  // d
}
function f() { return /* x */ 1 }
/* end */ // no line break