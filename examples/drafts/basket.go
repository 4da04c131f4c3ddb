// Package basket holds what customers have put into their baskets.
package basket

import "errors"

type Item struct {
	Name  string
	Price float64
	Count int
}

func (i Item) Total() float64 {
	return i.Price * float64(i.Count)
}

type Basket struct {
	items []Item
}

func (b *Basket) Add(name string, price float64, count int) error {
	if count < 1 {
		return errors.New("count must be positive")
	}
	b.items = append(b.items, Item{Name: name, Price: price, Count: count})
	return nil
}

func (b *Basket) Total() float64 {
	total := 0.0
	for _, item := range b.items {
		total += item.Total()
	}
	return total
}
