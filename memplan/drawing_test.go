package memplan

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// wellFormed reads a drawing to its end and counts its boxes.
func wellFormed(t *testing.T, svg []byte) int {
	t.Helper()
	boxes := 0
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return boxes
		}
		if err != nil {
			t.Fatalf("drawing is no XML: %v", err)
		}
		if e, ok := token.(xml.StartElement); ok && len(e.Attr) > 0 && e.Attr[0].Value == "b" {
			boxes++
		}
	}
}

func TestDrawing(t *testing.T) {
	p := workedExample()
	p.Buffers[3].ID = `<script>"&'` + "\x00"
	var b bytes.Buffer
	if err := Drawing(&b, "worked & example", p, solved(t, p)); err != nil {
		t.Fatal(err)
	}
	if n := wellFormed(t, b.Bytes()); n != len(p.Buffers) {
		t.Errorf("%d boxes for %d buffers", n, len(p.Buffers))
	}
	golden := filepath.Join("testdata", "drawing.svg")
	if *update {
		if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("drawing differs from %s: look at it after a run with -update", golden)
	}
}

func TestDrawingHoldsThousands(t *testing.T) {
	p := randomProblem(rand.New(rand.NewPCG(1, 1)), 5000)
	for i := range p.Buffers {
		p.Buffers[i].Size, p.Buffers[i].Fixed = max(p.Buffers[i].Size, 1), nil
	}
	s, err := Greedy(p)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Drawing(&b, "worked & example", p, s); err != nil {
		t.Fatal(err)
	}
	if n := wellFormed(t, b.Bytes()); n != 5000 || b.Len() > 5000*400 {
		t.Errorf("%d boxes in %d bytes", n, b.Len())
	}
}

func TestDrawingOfNothing(t *testing.T) {
	var b bytes.Buffer
	if err := Drawing(&b, "", Problem{}, Solution{}); err != nil {
		t.Fatal(err)
	}
	wellFormed(t, b.Bytes())
	if Drawing(&b, "", workedExample(), Solution{}) == nil {
		t.Error("no error for a solution of another problem")
	}
	if Drawing(full{}, "", Problem{}, Solution{}) == nil {
		t.Error("no error from a full disk")
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }
