package p
var x int
import "fmt"
