package p

type G[T any] = = []T
