// Command hello greets.
package main

import (
	"fmt"
	. "math"
	_ "embed"
	str "strings"
)

/* a
   comment */
func main() { fmt.Println(str.ToUpper("hi"), Pi) }
