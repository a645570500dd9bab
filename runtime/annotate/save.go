package annotate

import (
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"path/filepath"
	"strings"

	"github.com/eyas-edge/eyas/internal/atomicfile"
)

const jpegQuality = 90

// Save writes img as the extension of path says: .jpg or .jpeg (quality 90), or .png. The
// file is whole or not there.
func Save(path string, img *image.RGBA) error {
	var encode func(io.Writer) error
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".jpg", ".jpeg":
		encode = func(w io.Writer) error { return jpeg.Encode(w, img, &jpeg.Options{Quality: jpegQuality}) }
	case ".png":
		encode = func(w io.Writer) error {
			return (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(w, img)
		}
	default:
		return fmt.Errorf("save %s: pictures are written as .jpg, .jpeg or .png, not %q", path, ext)
	}
	return atomicfile.Write(path, encode)
}
