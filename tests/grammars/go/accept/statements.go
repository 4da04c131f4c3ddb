package p

func f(ch chan int, xs ...int) (n int, err error) {
	x := 3; y, z := x, -x
	x++
	y--
	x &^= 1 << 3
	*p, a[i] = 1, 2
	ch <- x+1
	<-ch
	v, ok := <-ch
	if x := g(); x < 0 {
	} else if y == (T{}) {
		return
	} else {
		goto end
	}
	for {
		break
	}
	for i := 0; i < 10; i++ {
		continue
	}
	for ; x < 3; {
	}
	for x < 3 {
	}
	for range xs {
	}
	for i := range 10 {
	}
	for k, v := range map[string]int{"a": 1} {
	}
outer:
	for ;; {
		break outer
	}
	switch x {
	case 1, 2:
		fallthrough
	default:
	}
	switch y := v.(type) {
	case *T, []int, func(int) string:
	case map[string]chan<- int, <-chan int:
	}
	switch {
	case x > 0: f(); return
	}
	select {
	case v := <-ch:
	case ch <- 1:
	default:
	}
	defer func() { recover() }()
	go f(ch, xs...)
	var q struct{}
	{
		_ = q
	}
	return x,
		nil
end:
}
