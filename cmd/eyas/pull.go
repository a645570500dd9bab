package main

import (
	"fmt"
	"io"
	"runtime"
	"text/tabwriter"

	"github.com/vbauerster/mpb/v8/decor"

	"github.com/eyas-edge/eyas/models/catalog"
)

type pullCmd struct {
	List  bool     `help:"List what there is, with licences."`
	Quiet bool     `short:"q" group:"out" help:"Only errors on standard error."`
	Names []string `arg:"" optional:"" name:"name" help:"A model, or onnxruntime:cpu, onnxruntime:cuda12, onnxruntime:cuda13."`
}

func (c *pullCmd) Run(e *env) error {
	if c.List {
		return listCatalog(e.stdout)
	}
	if len(c.Names) == 0 {
		return exitError{exitUsage, "nothing to pull: name a model, or use --list"}
	}
	for _, name := range c.Names {
		if _, err := catalog.Lookup(name); err != nil {
			return exitError{exitUsage, "pull: " + err.Error()}
		}
	}
	for _, name := range c.Names {
		if err := c.pull(e, name); err != nil {
			return err
		}
	}
	return nil
}

// pull prints the path of what it fetched on standard output, the rest on standard error.
func (c *pullCmd) pull(e *env, name string) error {
	entry, err := catalog.Lookup(name)
	if err != nil {
		return err
	}
	options, done := c.progress(e, name)
	paths, err := catalog.Pull(e.ctx, name, options)
	done()
	if sig := e.signals.received(); sig != 0 {
		return exitError{128 + int(sig), "stopped: what was fetched is kept, pull again to go on"}
	}
	if err != nil {
		return err
	}
	if !c.Quiet {
		e.log.Info(fmt.Sprintf("%s: %s, from %s, licence %s (%s)", name, entry.Description, entry.Origin, entry.License, entry.LicenseURL))
	}
	_, err = fmt.Fprintln(e.stdout, paths[0])
	return err
}

// progress shows a bar on a terminal.
func (c *pullCmd) progress(e *env, name string) (catalog.Options, func()) {
	if c.Quiet || !terminal(e.stderr) {
		return catalog.Options{}, func() {}
	}
	b := newBar(e, []decor.Decorator{decor.Name(name + "  "), decor.CountersKibiByte("% .1f / % .1f")},
		[]decor.Decorator{decor.AverageSpeed(decor.SizeB1024(0), "% .1f")})
	return catalog.Options{Progress: b.set}, b.close
}

func listCatalog(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	platform := runtime.GOOS + "/" + runtime.GOARCH
	for _, entry := range catalog.List() {
		state := ""
		if _, ok := catalog.Find(entry.Name); ok {
			state = "here"
		} else if _, err := entry.On(platform); err != nil {
			state = "not for " + platform
		} else if n := entry.Size(platform); n > 0 {
			state = fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", entry.Name, entry.License, state, entry.Description)
	}
	return t.Flush()
}
