package runtime_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/camera/frame"
	eyas "github.com/eyas-edge/eyas/runtime"
)

// One picture: the faces in a photo, with the model that `make run` has fetched.
func Example() {
	ctx := context.Background()
	rt, err := eyas.Open(ctx, eyas.Config{
		Models: map[string]eyas.ModelConfig{"face": {Path: "face", Conf: 0.5}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()

	pic, err := camera.ReadFile("../.deps/photos/sample1.jpg")
	if err != nil {
		log.Fatal(err)
	}
	defer pic.Release()
	res, err := rt.Detect(ctx, pic)
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range res.Detections {
		inside := d.Box[0] >= 0 && d.Box[2] <= float32(res.Width)
		fmt.Println(d.Class, d.Score > 0.5, inside)
	}
	// Output:
	// face true true
	// face true true
	// face true true
}

// A clip; a folder or a camera is opened the same way.
func ExampleRuntime_Stream() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	rt, err := eyas.Open(ctx, eyas.Config{Models: map[string]eyas.ModelConfig{"face": {Path: "face"}}})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()

	clip, err := camera.Open("gate=" + clipFile) // three frames at 25 a second
	if err != nil {
		log.Fatal(err)
	}
	for res, err := range rt.Stream(ctx, clip) {
		if err != nil { // one picture's or source's trouble; the others go on
			log.Print(err)
			continue
		}
		fmt.Println(res.Source, res.Frame, res.PTS, len(res.Detections))
	}
	// Output:
	// gate 0 0s 0
	// gate 1 40ms 0
	// gate 2 80ms 0
}

// Pixels of one's own: a grey picture that lies in memory already.
func ExampleRuntime_Detect_ownFrame() {
	ctx := context.Background()
	rt, err := eyas.Open(ctx, eyas.Config{Models: map[string]eyas.ModelConfig{"face": {Path: "face"}}})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()

	pixels := make([]byte, 640*480)
	own, err := camera.NewFrame(frame.Gray, 640, 480, []frame.Plane{{Data: pixels, Stride: 640}}, time.Now(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer own.Release()
	res, err := rt.Detect(ctx, own)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Width, res.Height, len(res.Detections))
	// Output: 640 480 0
}
