package p

import (
	"golang.org/x/exp/slices"
	m "math"
	`os`
	. "gopkg.in/yaml.v3"
)

func a(int, string)
func b(a, b int, c ...string)
func c(a.B, *c, ...d)
func d(a, b.C)
func e(a []int, b func(int) error, c map[string]int) (x, y int)
func g(a, b, c)
func (x *T) h(x T[int], y pkg.T[int, string], z ...T[int])

func i() {
	for i, v := range x {
	}
	for a[0], b.c = range x {
	}
	for range x {
	}
	a, b := f()
	switch x := y.(type) {
	case int:
	}
	select {
	case v, ok := <-c:
	case a[0] = <-c:
	}
	if err := f(); err != nil {
	}
}
