package sim

import (
	"os"
	"testing"
)

func BenchmarkGrid(b *testing.B) {
	for b.Loop() {
		scores, err := PlayAll(b.Context(), Full(), 1600, os.Getenv("NB") == "")
		if err != nil {
			b.Fatal(err)
		}
		Report(os.Stdout, scores, 6)
	}
}
