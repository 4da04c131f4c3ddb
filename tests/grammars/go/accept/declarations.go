package p

const (
	a = iota
	b
	_, c = iota, 1 << iota
)
const d float64 = 0x1p-2 + 1_000.5e+3i
var (
	e, f int
	g = map[string][]*T{"x": {{1, 2}, nil}, `raw
string`: {}}
	h func(int, ...string) (n int, err error)
	i chan<- (<-chan int)
	j [3]struct{ x, y int }
	k = [...]rune{'a', '\'', '\n', '\x41', '\u00e9', '日'}
)
type (
	T = struct {
		A, B int `json:"a,omitempty"`
		*p.Embedded
		List[int]
		F func() "tag"
	}
	I interface {
		M(x int) (string, error)
		fmt.Stringer
		~int | ~[]byte | *T
	}
	D [2]int
)
