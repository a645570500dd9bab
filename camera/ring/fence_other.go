//go:build !amd64 && !arm64

package ring

import "sync/atomic"

var fenced atomic.Uint32

// fence keeps every load and store before it in front of those after it: on the processors without a fence of
// their own here, a read-modify-write is taken for one.
func fence() { fenced.Add(1) }
