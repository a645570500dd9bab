package main

import (
	"encoding/json"

	eyas "github.com/eyas-edge/eyas/runtime"
)

type inspectCmd struct {
	JSON bool `name:"json" help:"One JSON document."`
	identityFlags
	Model string `arg:"" help:"An .onnx file or a pulled model."`
}

func (c *inspectCmd) Run(e *env) error {
	cfg := eyas.ModelConfig{Path: c.Model}
	c.identityFlags.apply(&cfg)
	m, err := eyas.Inspect(cfg)
	if err != nil {
		return err
	}
	if !c.JSON {
		return m.WriteText(e.stdout)
	}
	enc := json.NewEncoder(e.stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(m.Describe())
}
