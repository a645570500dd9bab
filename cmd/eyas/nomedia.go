//go:build !media

package main

import "github.com/eyas-edge/eyas/camera"

// sourceOptions are this build's own kinds of sources: none. With the build tag media there is one.
var sourceOptions []camera.Option
