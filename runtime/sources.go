package runtime

import (
	"errors"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/internal/places"
)

// OpenSources opens the sources of the configuration, in order. Sources that cannot be opened are
// left out; the error joins what is wrong with each.
func (c *Config) OpenSources() ([]camera.Source, error) {
	options := []camera.Option{
		camera.MaxPixels(c.MaxPixels), camera.Every(c.Every), camera.MaxFrames(c.Frames), camera.Logger(c.Logger),
	}
	if c.Realtime {
		options = append(options, camera.Realtime())
	}
	if dir, err := places.Here().Rings(); err == nil { // without a place for them there are no readers elsewhere
		options = append(options, camera.Share(dir))
	}
	if c.Pictures {
		options = append(options, camera.Held(heldPictures))
	}
	options = append(options, c.SourceOptions...)
	var sources []camera.Source
	var failed []error
	for _, s := range c.Sources {
		own := options[:len(options):len(options)]
		if s.Name != "" && s.Name != camera.Redact(s.URL) { // a key that is the URL is no name: see key
			own = append(own, camera.Name(s.Name))
		}
		source, err := camera.Open(s.URL, own...)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		sources = append(sources, source)
	}
	return sources, errors.Join(failed...)
}

// heldPictures is how many frames more a camera has where they are held until their results were seen: one that is
// filled in, one that runs, one that is read.
const heldPictures = 3
