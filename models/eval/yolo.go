package eval

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/eyas-edge/eyas/internal/regular"
	"github.com/eyas-edge/eyas/internal/yamlfile"
)

// Limits of a YOLO dataset.
const (
	maxPictures   = 1 << 20
	maxLabelBytes = 16 << 20
	maxLine       = 1 << 14
)

// Dataset is a YOLO dataset: a data.yaml, folders of pictures, and a label file for each picture that shows something.
type Dataset struct {
	Names []string // the classes of its label files
	Files []string // the split's pictures
}

// OpenYOLO reads a data.yaml and lists the pictures of a split: "val", "test" or "train". As in Ultralytics' format
// `path` is relative to the file, an entry is relative to `path` and is a folder (searched through), a text file
// that lists pictures, or a list of those. An entry that is not there, but is without a leading ../, is taken as that:
// a well-known exporter writes them so.
func OpenYOLO(file, split string) (*Dataset, error) {
	data, err := regular.Read(file, yamlfile.MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("dataset: %w", err)
	}
	d, err := parseDataYAML(data)
	if err != nil {
		return nil, fmt.Errorf("dataset %s:%w", file, err)
	}
	if len(d.splits[split]) == 0 {
		return nil, fmt.Errorf("dataset %s: it has no %s pictures: add the entry or name another split", file, split)
	}
	root := d.path
	if !filepath.IsAbs(root) {
		root = filepath.Join(filepath.Dir(file), root)
		if _, err := os.Stat(root); err != nil { // a path relative to some other tool's folder
			root = filepath.Dir(file)
		}
	}
	out := &Dataset{Names: d.names}
	for _, entry := range d.splits[split] {
		if out.Files, err = appendPictures(out.Files, resolve(root, entry)); err != nil {
			return nil, fmt.Errorf("dataset %s: %w", file, err)
		}
	}
	if len(out.Files) == 0 {
		return nil, fmt.Errorf("dataset %s: there is no picture in %s", file, strings.Join(d.splits[split], ", "))
	}
	slices.Sort(out.Files)
	out.Files = slices.Compact(out.Files)
	return out, nil
}

// resolve returns the place of an entry.
func resolve(root, entry string) string {
	entry = filepath.FromSlash(entry)
	if filepath.IsAbs(entry) {
		return entry
	}
	place := filepath.Join(root, entry)
	if _, err := os.Stat(place); err != nil {
		if rest, ok := strings.CutPrefix(entry, ".."+string(filepath.Separator)); ok {
			if other := filepath.Join(root, rest); exists(other) {
				return other
			}
		}
	}
	return place
}

func exists(file string) bool { _, err := os.Stat(file); return err == nil }

var errTooManyPictures = fmt.Errorf("more than %d pictures", maxPictures)

// appendPictures appends the pictures of a folder, of a list, or the one that place is.
func appendPictures(files []string, place string) ([]string, error) {
	info, err := os.Stat(place)
	if err != nil {
		return files, err
	}
	if !info.IsDir() {
		if strings.EqualFold(filepath.Ext(place), ".txt") {
			return appendList(files, place)
		}
		return append(files, place), nil
	}
	err = filepath.WalkDir(place, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !isPicture(p) {
			return err
		}
		if len(files) == maxPictures {
			return errTooManyPictures
		}
		files = append(files, p)
		return nil
	})
	return files, err
}

// appendList appends the pictures that a text file lists, relative to the file's folder.
func appendList(files []string, list string) ([]string, error) {
	f, err := regular.Open(list)
	if err != nil {
		return files, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		p := filepath.FromSlash(strings.TrimSpace(lines.Text()))
		if p == "" {
			continue
		}
		if len(files) == maxPictures {
			return files, errTooManyPictures
		}
		if !filepath.IsAbs(p) {
			p = filepath.Join(filepath.Dir(list), p)
		}
		files = append(files, p)
	}
	if err := lines.Err(); err != nil {
		return files, fmt.Errorf("%s: %w", list, err)
	}
	return files, nil
}

// isPicture goes by the name; label files and caches lie between pictures.
func isPicture(file string) bool {
	switch strings.ToLower(filepath.Ext(file)) {
	case ".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp":
		return true
	}
	return false
}

// labelFile returns where the labels of a picture lie: the last folder named images becomes labels, the
// ending .txt.
func labelFile(picture string) string {
	sep := string(filepath.Separator)
	images := sep + "images" + sep
	p := picture
	if i := strings.LastIndex(sep+p, images); i >= 0 { // with a separator in front for a relative images/x.jpg
		p = p[:i] + "labels" + p[i+len("images"):]
	}
	return strings.TrimSuffix(p, filepath.Ext(p)) + ".txt"
}

// GroundTruth reads the label files. size tells width and height in pixels of a picture as displayed; labels are the
// model's class names, or nil to take the dataset's. A picture without a label file shows nothing. Image
// IDs count from 0 in the order of d.Files. It fails with size's error, and for a broken line of a label file.
func (d *Dataset) GroundTruth(labels []string, size func(file string) (w, h int, err error)) (*GroundTruth, error) {
	categories := make([]category, 0, len(d.Names))
	for i, name := range d.Names {
		categories = append(categories, category{int64(i), name})
	}
	m, err := mapClasses(categories, labels)
	if err != nil {
		return nil, fmt.Errorf("dataset: %w", err)
	}
	g := &GroundTruth{Classes: m.classes, Skipped: m.skipped, ByOrder: m.byOrder, Images: make([]Image, 0, len(d.Files))}
	for i, file := range d.Files {
		w, h, err := size(file)
		if err != nil {
			return nil, fmt.Errorf("dataset: %w", err)
		}
		g.Images = append(g.Images, Image{ID: int64(i), File: file, W: w, H: h})
		name := labelFile(file)
		data, err := regular.Read(name, maxLabelBytes)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("labels: %w", err)
		}
		found, dropped, err := parseLabels(data, len(d.Names))
		if err != nil {
			return nil, fmt.Errorf("labels %s: %w", name, err)
		}
		g.Dropped += dropped
		for _, l := range found {
			class, ok := m.of[int64(l.class)]
			if !ok {
				continue
			}
			x, y := float64(w), float64(h)
			b := Box{Image: int64(i), Class: class, Box: [4]float64{l.box[0] * x, l.box[1] * y, l.box[2] * x, l.box[3] * y}}
			b.Area = (b.Box[2] - b.Box[0]) * (b.Box[3] - b.Box[1])
			g.Boxes = append(g.Boxes, b)
		}
	}
	return g, nil
}
