package batch

// heapify orders a binary heap whose least element is the first.
func heapify[T any](heap []T, less func(a, b T) bool) {
	for i := len(heap)/2 - 1; i >= 0; i-- {
		sink(heap, i, less)
	}
}

// sink restores the order below i, whose element has grown.
func sink[T any](heap []T, i int, less func(a, b T) bool) {
	for {
		child := 2*i + 1
		if child >= len(heap) {
			return
		}
		if child+1 < len(heap) && less(heap[child+1], heap[child]) {
			child++
		}
		if !less(heap[child], heap[i]) {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}
