package camera

import (
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	maxSide = 1 << 16 // pixels of a side that a text may ask for
	maxFPS  = 1000
)

// params are the parameters behind the "?" of a source's text.
type params struct {
	url.Values
}

// parseParams reads them; only the known names may occur, once each.
func parseParams(query string, known ...string) (params, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return params{}, badSpec("the parameters behind ? cannot be read: write them as name=value&name=value")
	}
	for name, v := range values {
		if !slices.Contains(known, name) {
			return params{}, badSpec("parameter %q is not known: use %s", name, strings.Join(known, ", "))
		}
		if len(v) > 1 {
			return params{}, badSpec("parameter %s is given %d times", name, len(v))
		}
	}
	return params{values}, nil
}

// size reads size=WIDTHxHEIGHT in pixels.
func (p params) size(fallback string, o *options) (w, h int, err error) {
	return p.sizeOf("size", fallback, o)
}

// sizeOf reads name=WIDTHxHEIGHT in pixels.
func (p params) sizeOf(name, fallback string, o *options) (w, h int, err error) {
	text := p.or(name, fallback)
	if text == "" {
		return 0, 0, badSpec("%s is missing: add %s=WIDTHxHEIGHT", name, name)
	}
	ws, hs, ok := strings.Cut(text, "x")
	w, errW := strconv.Atoi(ws)
	h, errH := strconv.Atoi(hs)
	if !ok || errW != nil || errH != nil || w < 1 || h < 1 || w > maxSide || h > maxSide {
		return 0, 0, badSpec("%s %q is not WIDTHxHEIGHT with sides of 1 to %d pixels", name, text, maxSide)
	}
	if o.tooLarge(w, h) {
		return 0, 0, badSpec("%dx%d pixels are more than the limit of %d: raise it with --max-pixels", w, h, o.maxPixels)
	}
	return w, h, nil
}

// fps reads the frames per second.
func (p params) fps() (float64, error) {
	text := p.or("fps", "30")
	fps, err := strconv.ParseFloat(text, 64)
	if err != nil || !(fps > 0 && fps <= maxFPS) {
		return 0, badSpec("fps %q is not a number above 0 and up to %d", text, maxFPS)
	}
	return fps, nil
}

// count reads a number from 1 on, 0 if it is not given.
func (p params) count(name string) (int, error) {
	text := p.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, badSpec("%s %q is not a number from 1 on", name, text)
	}
	return n, nil
}

// parseRequest reads ID?size=1280x720&fps=30&format=mjpeg.
func parseRequest(text string, o *options) (id string, want Request, err error) {
	id, query, _ := strings.Cut(text, "?")
	if id == "" {
		return "", want, badSpec("which camera is missing: eyas doctor lists them")
	}
	p, err := parseParams(query, "size", "fps", "format")
	if err == nil && p.Has("size") {
		want.Width, want.Height, err = p.size("", o)
	}
	if err == nil && p.Has("fps") {
		want.FPS, err = p.fps()
	}
	want.Format = strings.ToLower(p.Get("format"))
	return id, want, err
}

func (p params) or(name, fallback string) string {
	if v := p.Get(name); v != "" {
		return v
	}
	return fallback
}

// timeOf returns when frame n is due at a rate. Far beyond any clip it stays at the largest time.
func timeOf(n uint64, fps float64) time.Duration {
	ns := math.Round(float64(n) / fps * 1e9)
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(ns)
}
