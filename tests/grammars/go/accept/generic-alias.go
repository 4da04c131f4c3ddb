package p

type G[T any] = []T
type Set[K comparable, V interface{ ~int | *K }] = map[K]V
type (
	A       = int
	B[T any] = G[T]
	C[T any] struct{ x T }
	D       [3]int
)
