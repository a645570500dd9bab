//go:build !linux

package prep

import "testing"

// guarded returns n bytes; only Linux has pages around them that nobody may touch.
func guarded(_ testing.TB, n int, _ bool) []byte { return make([]byte, n) }
