package p

type Number interface{ ~int | ~float64 }
type List[T any] struct{ next *List[T]; val T }
type Pair[K comparable, V any] struct { k K; v V }

func Map[S ~[]E, E, R any](s S, f func(E) R) []R {
	r := make([]R, 0, len(s))
	for _, v := range s {
		r = append(r, f(v))
	}
	return r
}
func (l *List[T]) Push(v T) { l.next = &List[T]{val: v} }

var x = Map[[]int, int, string](nil, nil)
var y = Pair[string, List[int]]{"a", List[int]{}}
