'use strict'
var a = 1 // one
var b = /* two */ 2
if (a) {
  b()
}
