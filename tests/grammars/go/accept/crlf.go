package p

import "fmt"

func f() {
	fmt.Println(1) // x
}
