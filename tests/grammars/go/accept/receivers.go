package p

func (T) a()       {}
func (*T) b()      {}
func ((*(T))) c()  {}
func (t *T[P]) d() {}
