package batch

// Supersede gives up the oldest frame of a camera whose memory a newer one needs; nothing if none waits.
func (b *Batcher[H]) Supersede(camera int) []Drop[H] {
	b.drops = b.drops[:0]
	if b.core.queue.cameras[camera].n > 0 {
		b.drop(b.core.supersede(camera), Superseded)
	}
	return b.drops
}
