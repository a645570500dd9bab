//go:build media

package main

import (
	_ "github.com/pion/mediadevices/pkg/driver/camera" // its init opens every camera of the machine

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/camera/media"
)

// sourceOptions are this build's own kinds of sources.
var sourceOptions = []camera.Option{media.Scheme()}
