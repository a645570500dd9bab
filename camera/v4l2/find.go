package v4l2

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/eyas-edge/eyas/internal/fserr"
)

// maxNodes bounds how many devices are looked at.
const maxNodes = 256

// nodes lists the video devices, /dev/video0 first.
func (h Host) nodes() []string {
	entries, _ := os.ReadDir(h.file("/dev")) // a machine without it has none
	var numbers []int
	for _, e := range entries {
		if n, ok := nodeNumber("/dev/" + e.Name()); ok {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	var paths []string
	for _, n := range numbers[:min(len(numbers), maxNodes)] {
		paths = append(paths, "/dev/video"+strconv.Itoa(n))
	}
	return paths
}

// nodeNumber returns N of /dev/videoN.
func nodeNumber(path string) (int, bool) {
	digits, ok := strings.CutPrefix(path, "/dev/video")
	n, err := strconv.ParseUint(digits, 10, 16)
	return int(n), ok && err == nil && strconv.FormatUint(n, 10) == digits
}

// links returns the names in a folder of links, by the device that they lead to; of several the first.
func (h Host) links(dir string) map[string]string {
	found := make(map[string]string)
	entries, _ := os.ReadDir(h.file(dir)) // in order; no folder, no names
	for _, e := range entries {
		to, err := os.Readlink(h.file(filepath.Join(dir, e.Name())))
		if err != nil {
			continue
		}
		if node := "/dev/" + filepath.Base(to); found[node] == "" {
			found[node] = e.Name()
		}
	}
	return found
}

const (
	byID   = "/dev/v4l/by-id"
	byPath = "/dev/v4l/by-path"
)

// Device is a video device that gives frames.
type Device struct {
	Path         string // /dev/videoN
	ByID, ByPath string // its names in /dev/v4l/by-id and by-path, "" where it has none
	Card         string // the camera's own name
	Driver, Bus  string
	Modes        []Mode // only of Devices
	Err          error  // why it cannot be used, or nothing more is known
}

// Devices lists the cameras with all that they give. Devices that give no frames are left out.
func (h Host) Devices() []Device {
	return h.scan(func(d handle, dev *Device) {
		dev.Modes = d.modes()
		for i := range dev.Modes {
			m := &dev.Modes[i]
			for j := range m.Sizes {
				m.Sizes[j].FPS = d.rates(m.fourCC, m.Sizes[j].MaxWidth, m.Sizes[j].MaxHeight)
			}
		}
	})
}

// scan looks at every device that gives frames, or cannot be opened, and has see ask more of those that can be used.
func (h Host) scan(see func(handle, *Device)) []Device {
	ids, paths := h.links(byID), h.links(byPath)
	var list []Device
	for _, path := range h.nodes() {
		dev := Device{Path: path, ByID: ids[path], ByPath: paths[path]}
		if h.look(&dev, see) {
			list = append(list, dev)
		}
	}
	return list
}

// look fills in what a device says of itself, and says whether it belongs into a list of cameras.
func (h Host) look(dev *Device, see func(handle, *Device)) bool {
	d, err := h.open(dev.Path)
	if err != nil {
		dev.Err = h.explain(dev.Path, err)
		return true
	}
	defer d.close() // nothing was written
	c, err := d.capability()
	if err != nil {
		dev.Err = h.explain(dev.Path, err)
		return true
	}
	dev.Driver, dev.Card, dev.Bus = c.driver, c.card, c.bus
	dev.Err = c.refusal(dev.Path)
	if dev.Err == nil && see != nil {
		see(d, dev)
	}
	return c.captures()
}

// Camera is a camera that is opened again and again, and found each time. It is for one goroutine.
type Camera struct {
	host   Host
	id     string
	want   Request
	tried  bool   // to open it, at least once
	opened bool   // it was, at least once
	known  Device // as it was then, if it goes by a number
	alone  bool   // no other camera was called so then
}

// Camera returns the camera of a name: N or /dev/videoN, a path that leads there, a name in /dev/v4l/by-id or
// by-path, or the camera's own name. A camera that was opened by its number is found again where it has another, for example after it
// was unplugged. Nothing is looked at before Open.
func (h Host) Camera(id string, want Request) *Camera {
	if _, err := strconv.ParseUint(id, 10, 16); err == nil {
		id = "/dev/video" + id
	}
	return &Camera{host: h, id: id, want: want.OrDefaults()}
}

// numbered says that the camera goes by a number, which changes.
func (c *Camera) numbered() bool {
	_, ok := nodeNumber(c.id)
	return ok
}

// find returns the device as it is called now.
func (c *Camera) find() (path string, err error) {
	switch {
	case c.numbered() && c.opened:
		return c.again()
	case c.numbered():
		return c.id, nil
	case strings.HasPrefix(c.id, "/"):
		if path, err = c.host.follow(c.id); err != nil {
			err = c.host.explain(c.id, err)
		}
		return path, err
	case !strings.Contains(c.id, "/"):
		for _, dir := range []string{byID, byPath} {
			if path, err := c.host.follow(filepath.Join(dir, c.id)); err == nil {
				return path, nil
			}
		}
	}
	return c.host.called(c.id)
}

// follow returns where a link leads.
func (h Host) follow(path string) (string, error) {
	to, err := filepath.EvalSymlinks(h.file(path))
	if err != nil {
		return "", fserr.Bare(err)
	}
	rel, err := filepath.Rel(h.root, to)
	return "/" + rel, err
}

// called returns the camera that has a name of its own.
func (h Host) called(name string) (string, error) {
	var matches []Device
	var names []string
	var hidden error
	for _, d := range h.scan(nil) {
		switch {
		case d.Err != nil:
			hidden = d.Err
			continue
		case strings.EqualFold(d.Card, name):
			matches = append(matches, d)
		}
		names = append(names, fmt.Sprintf("%s (%s)", d.Path, d.Card))
	}
	switch {
	case len(matches) == 1:
		return matches[0].Path, nil
	case len(matches) > 1:
		var ids []string
		for _, d := range matches {
			ids = append(ids, cmp.Or(d.ByPath, d.Path))
		}
		return "", fmt.Errorf("%d cameras are called so: use one of %s", len(matches), strings.Join(ids, ", "))
	case hidden != nil:
		return "", hidden
	case len(names) == 0:
		return "", errors.New("there is no such camera, and no other")
	}
	return "", fmt.Errorf("there is no such camera; there are %s", strings.Join(names, ", "))
}

// remember notes what the camera is known by.
func (c *Camera) remember(path string, caps capability) {
	if c.opened = true; !c.numbered() {
		return
	}
	c.known = Device{
		Path: path, ByID: c.host.links(byID)[path], ByPath: c.host.links(byPath)[path],
		Card: caps.card, Driver: caps.driver, Bus: caps.bus,
	}
	c.alone = !slices.ContainsFunc(c.host.scan(nil), func(d Device) bool { return d.Path != path && d.Card == caps.card })
}

// again finds a camera that was open: where it was plugged in, or elsewhere by its name in by-id, which holds its serial number
// if it has one. Where there were two of a kind the second rule could take one for the other.
func (c *Camera) again() (string, error) {
	k, missing := c.known, errGone
	var alike []Device
	for _, d := range c.host.scan(nil) {
		switch {
		case d.Err != nil:
			if d.Path == k.Path { // it could be the camera
				missing = d.Err
			}
		case d.Card != k.Card:
		case d.Bus == k.Bus && d.ByPath == k.ByPath:
			return d.Path, nil
		case d.ByID == k.ByID:
			alike = append(alike, d)
		}
	}
	if c.alone && len(alike) == 1 {
		return alike[0].Path, nil
	}
	return "", missing
}
