package cache

import (
	"fmt"
	"io"
)

// Plan returns the plan that is kept for a key, as SavePlan was given it, and whether there is one. One that is
// damaged is removed.
func (c *Cache) Plan(key Key) ([]byte, bool) {
	if c.root == nil {
		return nil, false
	}
	data, err := c.findPlan(key)
	if err != nil {
		_ = c.root.Remove(planKind.file(key)) // mostly there is none
		return nil, false
	}
	c.used(planKind, key)
	return data, true
}

// SavePlan keeps a plan, of at most 16 MiB, in place of the one that there was. The error is one line for a
// warning: the run goes on without. None keeps nothing, which is no error.
func (c *Cache) SavePlan(key Key, plan []byte) error {
	if c.root == nil {
		return c.why
	}
	if err := c.write(describe(planKind, key, plan), plan); err != nil {
		return c.unkept("plan", err)
	}
	return nil
}

func (c *Cache) findPlan(key Key) ([]byte, error) {
	f, h, err := c.open(planKind, key)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readPlan(f, h)
}

// readPlan reads the content that h describes.
func readPlan(r io.Reader, h header) ([]byte, error) {
	data := make([]byte, h.size)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	return data, h.verify(data)
}
