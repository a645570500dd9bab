//go:build amd64 || arm64

package ring

// fence keeps every load and store before it in front of those after it, as other cores see them. Go's
// atomics order themselves, but on arm64 the plain bytes of a picture may pass them.
func fence()
