package runtime_test

import (
	"path/filepath"
	"testing"

	"github.com/eyas-edge/eyas/internal/testenv"
	"github.com/eyas-edge/eyas/memplan"
	eyas "github.com/eyas-edge/eyas/runtime"
)

// What a run at a larger input size has saved does not make the arena of a smaller one larger.
func TestPlansOfAnotherInputSizeAreLeftAlone(t *testing.T) {
	t.Setenv("EYAS_HOME", t.TempDir())
	arena := func(side int) int64 {
		rt := open(t, eyas.Config{Models: map[string]eyas.ModelConfig{"m": {
			Path:    filepath.Join(testenv.Assets(t), "models", "yolov8n_int8_dynshape_op17.onnx"),
			ImgSize: eyas.ImgSize{H: side, W: side},
		}}})
		defer rt.Close()
		return rt.Plan().Of(memplan.Arena)
	}
	before := arena(192)
	if larger := arena(320); larger <= before {
		t.Fatalf("an arena of %d bytes for 320 pixels a side, %d for 192", larger, before)
	}
	if after := arena(192); after != before {
		t.Errorf("an arena of %d bytes after a run at 320 pixels a side, %d before it", after, before)
	}
}
