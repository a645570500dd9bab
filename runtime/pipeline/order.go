package pipeline

// Order puts items that end in any order back into the one in which they began, within each of some groups. It is not for
// several goroutines at once, and allocates nothing once its queues have grown.
type Order[T any] struct {
	groups []queue[entry[T]]
	ready  queue[T]
}

type entry[T any] struct {
	item T
	done bool
}

// NewOrder returns an empty order of so many groups.
func NewOrder[T any](groups int) *Order[T] {
	return &Order[T]{groups: make([]queue[entry[T]], groups)}
}

// Ticket names an item of a group.
type Ticket struct {
	group int
	at    uint64
}

// Begin puts an item at the end of its group.
func (o *Order[T]) Begin(group int, item T) Ticket {
	q := &o.groups[group]
	q.push(entry[T]{item: item})
	return Ticket{group, q.last - 1}
}

// Done says that an item has ended: it is ready once all before it in its group have.
func (o *Order[T]) Done(t Ticket) {
	q := &o.groups[t.group]
	q.at(t.at).done = true
	for q.len() > 0 && q.at(q.first).done {
		o.ready.push(q.pop().item)
	}
}

// Next takes out the item that has been ready for longest; false if there is none.
func (o *Order[T]) Next() (item T, ok bool) {
	if o.ready.len() == 0 {
		return item, false
	}
	return o.ready.pop(), true
}

// Ready returns how many items Next can take out.
func (o *Order[T]) Ready() int { return o.ready.len() }

// Open returns how many items have begun and were not taken out by Next.
func (o *Order[T]) Open() int {
	n := o.ready.len()
	for i := range o.groups {
		n += o.groups[i].len()
	}
	return n
}

// queue is first in, first out, in a ring that grows. Positions count from the first item ever.
type queue[T any] struct {
	ring        []T
	first, last uint64
}

func (q *queue[T]) len() int { return int(q.last - q.first) }

func (q *queue[T]) at(i uint64) *T { return &q.ring[i%uint64(len(q.ring))] }

func (q *queue[T]) push(item T) {
	if q.len() == len(q.ring) {
		grown := make([]T, max(2*len(q.ring), 8))
		for i := q.first; i < q.last; i++ {
			grown[i%uint64(len(grown))] = *q.at(i)
		}
		q.ring = grown
	}
	*q.at(q.last) = item
	q.last++
}

func (q *queue[T]) pop() T {
	item := *q.at(q.first)
	var zero T
	*q.at(q.first) = zero
	q.first++
	return item
}
