package main

import (
	"encoding/json"

	eyas "github.com/eyas-edge/eyas/runtime"
)

type inspectCmd struct {
	JSON    bool         `name:"json" help:"One JSON document."`
	ImgSize eyas.ImgSize `name:"imgsz" group:"model" placeholder:"N|HxW" help:"Input size of a model with dynamic axes (default: its metadata, else 640)."`
	Labels  string       `group:"model" placeholder:"FILE" help:"Class names, one a line or YAML names."`
	Family  string       `group:"model" placeholder:"NAME" help:"What the model is, where its shapes leave that open."`
	Model   string       `arg:"" help:"An .onnx file or a pulled model."`
}

func (c *inspectCmd) Run(e *env) error {
	m, err := eyas.Inspect(eyas.ModelConfig{Path: c.Model, ImgSize: c.ImgSize, Labels: c.Labels, Family: c.Family})
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
