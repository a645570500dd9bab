package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionCmd struct {
	JSON bool `name:"json" help:"One JSON document."`
}

func (c *versionCmd) Run(e *env) error {
	v := struct {
		Version  string `json:"version"`
		Go       string `json:"go"`
		Platform string `json:"platform"`
		Revision string `json:"revision,omitempty"`
	}{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Revision = s.Value
			}
		}
	}
	if c.JSON {
		return json.NewEncoder(e.stdout).Encode(v)
	}
	_, err := fmt.Fprintf(e.stdout, "eyas %s (%s, %s)\n", v.Version, v.Go, v.Platform)
	return err
}
