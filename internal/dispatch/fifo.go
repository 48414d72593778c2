package dispatch

// fifo is a queue in a slice that shrinks from the front. The zero value is empty.
type fifo[T any] struct {
	items []T
	head  int
}

func (f *fifo[T]) len() int { return len(f.items) - f.head }

func (f *fifo[T]) push(item T) { f.items = append(f.items, item) }

// pushFront puts an item before all others.
func (f *fifo[T]) pushFront(item T) {
	if f.head == 0 {
		f.items = append([]T{item}, f.items...)
		return
	}
	f.head--
	f.items[f.head] = item
}

func (f *fifo[T]) peek() T { return f.items[f.head] }

func (f *fifo[T]) pop() T {
	var zero T
	item := f.items[f.head]
	f.items[f.head] = zero
	f.head++
	if f.head == len(f.items) {
		f.items, f.head = f.items[:0], 0
	} else if f.head > 64 && f.head > len(f.items)/2 {
		f.items = append(f.items[:0], f.items[f.head:]...)
		f.head = 0
	}
	return item
}

func (f *fifo[T]) popLast() T {
	var zero T
	item := f.items[len(f.items)-1]
	f.items[len(f.items)-1] = zero
	f.items = f.items[:len(f.items)-1]
	return item
}

// drop removes the items for which gone is true.
func (f *fifo[T]) drop(gone func(T) bool) {
	kept := f.items[:0]
	for _, item := range f.items[f.head:] {
		if !gone(item) {
			kept = append(kept, item)
		}
	}
	clear(f.items[len(kept):])
	f.items, f.head = kept, 0
}
