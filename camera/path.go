package camera

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/eyas-edge/eyas/camera/picture"
	"github.com/eyas-edge/eyas/internal/fserr"
)

// pictureExts are the extensions of the pictures in a folder.
var pictureExts = []string{".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp"}

// streamExts are the extensions of clips whose first bytes are those of a picture.
var streamExts = []string{".mjpeg", ".mjpg"}

// clipExts are the extensions of clips, only to say that a folder's were skipped.
var clipExts = []string{".mp4", ".m4v", ".mov", ".avi", ".mkv", ".webm", ".ts", ".m2ts", ".mpg", ".mpeg",
	".wmv", ".flv", ".3gp", ".h264", ".h265", ".hevc", ".mjpeg", ".mjpg"}

func hasExt(path string, exts []string) bool {
	return slices.Contains(exts, strings.ToLower(filepath.Ext(path)))
}

// openPath opens what is neither URL nor device: a folder, a picture, a clip or a glob. What
// exists under this very name is never taken for a glob.
func openPath(b base, named bool, path string) (Source, error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return openFolder(b, named, path)
	case err == nil && !info.Mode().IsRegular():
		return nil, errors.New("is neither a file nor a folder")
	case err == nil:
		return openFile(b, path)
	case strings.Contains(path, "://"):
		return nil, badSpec("this kind of URL is not known: use rtsp://, http:// or https://")
	case strings.ContainsAny(path, "*?["):
		return openGlob(b, named, path)
	}
	return nil, fserr.Bare(err)
}

// openFile opens a picture or a clip, told apart by the extension where it is a known one of
// a picture, else by the first bytes.
func openFile(b base, path string) (Source, error) {
	isPicture := hasExt(path, pictureExts)
	if !isPicture && !hasExt(path, streamExts) {
		head, err := readHead(path)
		if err != nil {
			return nil, fserr.Bare(err)
		}
		isPicture = looksLikePicture(head)
	}
	if isPicture {
		return &pictures{base: b, paths: []string{path}, named: true, single: true}, nil
	}
	return openClip(b, path)
}

// readHead returns up to the first 4 KiB of a file.
func readHead(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 4096))
}

// looksLikePicture says whether a file begins as a picture does. "BM" alone would be too
// little to go by, so that a BMP has to have a readable header.
func looksLikePicture(head []byte) bool {
	for _, magic := range []string{"\xff\xd8\xff", "\x89PNG\r\n\x1a\n", "GIF87a", "GIF89a"} {
		if bytes.HasPrefix(head, []byte(magic)) {
			return true
		}
	}
	if bytes.HasPrefix(head, []byte("RIFF")) {
		return len(head) >= 12 && string(head[8:12]) == "WEBP"
	}
	if !bytes.HasPrefix(head, []byte("BM")) {
		return false
	}
	_, _, err := picture.Size(head)
	return err == nil
}

// openFolder opens the pictures of one folder. It does not look into folders below.
func openFolder(b base, named bool, dir string) (Source, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fserr.Bare(err)
	}
	paths := make([]string, 0, len(entries))
	for _, e := range entries {
		if !e.IsDir() {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return newPictures(b, named, paths, "no picture in this folder")
}

func openGlob(b base, named bool, pattern string) (Source, error) {
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return nil, badSpec("this pattern cannot be read: check its brackets")
	}
	paths = slices.DeleteFunc(paths, func(p string) bool {
		info, err := os.Stat(p)
		return err == nil && info.IsDir()
	})
	return newPictures(b, named, paths, "no picture matches")
}

// newPictures makes the source of those paths that are pictures by their extension, in
// natural order.
func newPictures(b base, named bool, paths []string, none string) (Source, error) {
	s := &pictures{base: b, named: named}
	clips := 0
	for _, p := range paths {
		switch {
		case strings.HasPrefix(filepath.Base(p), "."):
		case hasExt(p, pictureExts):
			s.paths = append(s.paths, p)
		case hasExt(p, clipExts):
			clips++
			b.opts.log.Warn("clip " + p + " is skipped: give it as a source of its own")
		}
	}
	if len(s.paths) == 0 {
		if clips > 0 {
			none += ", only clips: give each as a source of its own"
		} else {
			none += " (jpg, png, webp, gif, bmp)"
		}
		return nil, errors.New(none)
	}
	slices.SortFunc(s.paths, natural)
	return s, nil
}
