package main

import (
	"github.com/eyas-edge/eyas/runtime/doctor"
)

type doctorCmd struct {
	JSON bool   `name:"json" help:"One JSON document."`
	ORT  string `name:"ort" group:"engine" placeholder:"PATH" help:"The ONNX Runtime library."`
}

func (c *doctorCmd) Run(e *env) error {
	report := doctor.Run(e.ctx, "/", c.ORT)
	write := report.Text
	if c.JSON {
		write = report.JSON
	}
	if err := write(e.stdout); err != nil {
		return err
	}
	if report.Failed() {
		return exitError{code: exitMachine} // the report has said why
	}
	return nil
}
