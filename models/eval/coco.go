package eval

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// MaxCOCOBytes is the longest instances file that is read: COCO's largest, that of its training pictures,
// has 470 MB.
const MaxCOCOBytes = 1 << 30

// cocoFile is what matters of an instances file; masks are skipped while reading.
type cocoFile struct {
	Images []struct {
		ID     int64  `json:"id"`
		File   string `json:"file_name"`
		Width  int    `json:"width"`
		Height int    `json:"height"`
	} `json:"images"`
	Annotations []struct {
		ID       int64    `json:"id"`
		Image    int64    `json:"image_id"`
		Category int64    `json:"category_id"`
		Box      cocoBox  `json:"bbox"`
		Area     *float64 `json:"area"`
		Crowd    flag     `json:"iscrowd"`
	} `json:"annotations"`
	Categories []struct {
		ID   int64  `json:"id"`
		Name string `json:"name"`
	} `json:"categories"`
}

// cocoBox is x,y,width,height, exactly four numbers.
type cocoBox [4]float64

func (b *cocoBox) UnmarshalJSON(data []byte) error {
	var v []float64
	if err := json.Unmarshal(data, &v); err != nil {
		return fmt.Errorf("a bbox is %.40s: it has to be four numbers [x,y,width,height]", data)
	}
	if len(v) != 4 {
		return fmt.Errorf("a bbox has %d values: it has to be four numbers [x,y,width,height]", len(v))
	}
	copy(b[:], v)
	return nil
}

// flag is 0, 1, false or true: tools write both.
type flag bool

func (f *flag) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case "0", "false", "null":
		*f = false
	case "1", "true":
		*f = true
	default:
		return fmt.Errorf("an iscrowd is %.20s: it has to be 0 or 1", data)
	}
	return nil
}

// ReadCOCO reads a COCO instances file of at most MaxCOCOBytes. labels are the model's class names, or nil
// to take the dataset's: see GroundTruth.Skipped for those that do not meet. An object without area takes its box's.
// One without a box, or with a box without width or height, is left out and counted in GroundTruth.Dropped: nothing
// can match it. As in pycocotools only iscrowd makes an object ignored; a field ignore has no meaning. Errors are
// one line and leave the naming of the file to the caller.
func ReadCOCO(r io.Reader, labels []string) (*GroundTruth, error) {
	limited := &io.LimitedReader{R: r, N: MaxCOCOBytes + 1}
	var f cocoFile
	dec := json.NewDecoder(limited)
	if err := dec.Decode(&f); err != nil {
		if limited.N <= 0 {
			return nil, fmt.Errorf("more than %d MB: %s", MaxCOCOBytes>>20, wantCOCO)
		}
		return nil, explainJSON(err)
	}
	if len(f.Images) == 0 || len(f.Categories) == 0 {
		return nil, errors.New("no images or no categories: " + wantCOCO)
	}
	return f.groundTruth(labels)
}

const wantCOCO = "give a COCO instances file, an object with images, annotations and categories"

// explainJSON says what is wrong with an instances file in terms of the file: the decoder's own words are about types
// of this package.
func explainJSON(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the file ends early: copy or export it again")
	case errors.As(err, &syntax):
		return fmt.Errorf("no JSON at byte %d (%.80s): %s", syntax.Offset, syntax.Error(), wantCOCO)
	case errors.As(err, &kind) && kind.Field == "":
		return fmt.Errorf("it is a JSON %.20s: %s", kind.Value, wantCOCO)
	case errors.As(err, &kind):
		return fmt.Errorf("%.60s is a JSON %.40s at byte %d, which does not fit there: %s", kind.Field, kind.Value, kind.Offset, wantCOCO)
	}
	return err
}

func (f *cocoFile) groundTruth(labels []string) (*GroundTruth, error) {
	categories := make([]category, 0, len(f.Categories))
	known := make(map[int64]bool, len(f.Categories))
	for _, c := range f.Categories {
		categories = append(categories, category{c.ID, c.Name})
		known[c.ID] = true
	}
	m, err := mapClasses(categories, labels)
	if err != nil {
		return nil, err
	}
	g := &GroundTruth{Classes: m.classes, Skipped: m.skipped, ByOrder: m.byOrder, Images: make([]Image, 0, len(f.Images))}
	images := make(map[int64]bool, len(f.Images))
	for _, i := range f.Images {
		if images[i.ID] {
			return nil, fmt.Errorf("two images have the ID %d", i.ID)
		}
		images[i.ID] = true
		g.Images = append(g.Images, Image{ID: i.ID, File: i.File, W: i.Width, H: i.Height})
	}
	slices.SortFunc(g.Images, func(a, b Image) int { return cmp.Compare(a.ID, b.ID) })
	for _, a := range f.Annotations {
		if !images[a.Image] {
			return nil, fmt.Errorf("annotation %d belongs to image %d, which is not there", a.ID, a.Image)
		}
		if !known[a.Category] {
			return nil, fmt.Errorf("annotation %d has category %d, which is not there", a.ID, a.Category)
		}
		if !(a.Box[2] > 0 && a.Box[3] > 0) {
			g.Dropped++
			continue
		}
		class, ok := m.of[a.Category]
		if !ok {
			continue
		}
		b := Box{Image: a.Image, Class: class, Box: [4]float64{a.Box[0], a.Box[1], a.Box[0] + a.Box[2], a.Box[1] + a.Box[3]},
			Area: a.Box[2] * a.Box[3], Crowd: bool(a.Crowd)}
		if a.Area != nil {
			b.Area = *a.Area
		}
		if math.IsInf(size(b.Box), 0) || math.IsNaN(size(b.Box)) {
			return nil, fmt.Errorf("annotation %d has the box %v", a.ID, a.Box)
		}
		g.Boxes = append(g.Boxes, b)
	}
	return g, nil
}
