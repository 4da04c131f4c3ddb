package p
func (