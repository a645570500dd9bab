package main

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/vbauerster/mpb/v8/decor"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/internal/regular"
	"github.com/eyas-edge/eyas/models/eval"
	eyas "github.com/eyas-edge/eyas/runtime"
)

type evalCmd struct {
	JSON   bool   `name:"json" help:"One JSON document."`
	COCO   string `name:"coco" placeholder:"FILE" xor:"data" help:"Ground truth: a COCO instances file."`
	Images string `placeholder:"DIR" help:"The pictures of --coco (default: beside the file)."`
	Data   string `placeholder:"data.yaml" xor:"data" help:"Ground truth: a YOLO dataset."`
	Split  string `default:"val" enum:"val,test,train" help:"Split of --data: val, test or train."`
	modelFlags
	engineFlags
	LogFormat string `group:"out" enum:"text,json" default:"text" help:"text or json."`
	Quiet     bool   `short:"q" group:"out" help:"Only errors on standard error."`
	MaxPixels int    `group:"out" placeholder:"100000000" help:"Size up to which pictures are opened."`
	Model     string `arg:"" help:"An .onnx file or a pulled model."`
}

func (c *evalCmd) Run(e *env) error {
	if c.COCO == "" && c.Data == "" {
		return exitError{exitUsage, "eval: name the ground truth with --coco FILE or --data data.yaml"}
	}
	e.setLog(c.LogFormat, c.Quiet)
	cfg := eyas.Config{MaxPixels: c.MaxPixels, Logger: e.log}
	c.engineFlags.apply(&cfg)
	addModel(&cfg, c.Model)
	for key, m := range cfg.Models {
		m.Conf, m.MaxDet = eyas.EvalConf, eyas.EvalMaxDet
		c.modelFlags.apply(&m)
		cfg.Models[key] = m
	}
	rt, err := eyas.Open(e.ctx, cfg)
	if err != nil {
		return err
	}
	defer rt.Close()
	model := rt.Models()[0]
	truth, err := c.truth(model.Info().Labels)
	if err != nil {
		return exitError{exitFailed, "eval: " + err.Error()}
	}
	if len(truth.Skipped) > 0 {
		cfg.Logger.Warn("left out are classes of the dataset that the model does not have: " + some(truth.Skipped))
	}
	if truth.Dropped > 0 {
		cfg.Logger.Warn(fmt.Sprintf("left out are %d objects of the dataset without a box or with one of no area: check its boxes' widths and heights", truth.Dropped))
	}
	if truth.ByOrder {
		cfg.Logger.Warn("not one class of the dataset is called as the model's: they are taken in their order, which may be wrong; --labels names the model's classes")
	}
	return c.measure(e, model, truth)
}

func (c *evalCmd) truth(labels []string) (*eval.GroundTruth, error) {
	if c.COCO != "" {
		f, err := regular.Open(c.COCO)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		truth, err := eval.ReadCOCO(f, labels)
		if err != nil {
			return nil, fmt.Errorf("coco %s: %w", c.COCO, err)
		}
		return truth, nil
	}
	data, err := eval.OpenYOLO(c.Data, c.Split)
	if err != nil {
		return nil, err
	}
	return data.GroundTruth(labels, camera.FileSize)
}

func (c *evalCmd) measure(e *env, model *eyas.Model, truth *eval.GroundTruth) error {
	var bad int
	progress, done := c.progress(e)
	res, err := model.Evaluate(e.ctx, truth, c.path, func(err error) {
		bad++
		e.say(err)
	}, progress)
	done()
	if sig := e.signals.received(); sig != 0 {
		return exitError{128 + int(sig), "eval: stopped before the last picture: no figures"}
	}
	if err != nil {
		return err
	}
	write := writeEval
	if c.JSON {
		write = writeEvalJSON
	}
	if err := write(e.stdout, model.Key(), res, bad); err != nil {
		return err
	}
	if bad > 0 {
		return exitError{code: exitFailed}
	}
	return nil
}

// path returns where a picture lies: below --images, else beside the COCO file; a YOLO dataset says it
// itself.
func (c *evalCmd) path(image eval.Image) string {
	switch {
	case c.COCO == "":
		return image.File
	case c.Images != "":
		return filepath.Join(c.Images, filepath.FromSlash(image.File))
	}
	return filepath.Join(filepath.Dir(c.COCO), filepath.FromSlash(image.File))
}

// progress shows a bar on a terminal. Errors go above it.
func (c *evalCmd) progress(e *env) (func(done, total int), func()) {
	if c.Quiet || !terminal(e.stderr) {
		return nil, func() {}
	}
	b := newBar(e, []decor.Decorator{decor.CountersNoUnit("%d / %d")}, []decor.Decorator{decor.AverageETA(decor.ET_STYLE_GO)})
	return func(done, total int) { b.set(int64(done), int64(total)) }, b.close
}

func some(names []string) string {
	const most = 8
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + ", ..."
}

// figure writes a value of 0..1, or a dash where there was nothing to measure.
func figure(v float64) string {
	if v < 0 {
		return "-"
	}
	return fmt.Sprintf("%.4f", v)
}

func writeEval(w io.Writer, model string, r eval.Result, bad int) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s: %d pictures, %d objects, %d detections\n\n", model, r.Images, r.Boxes, r.Detections)
	fmt.Fprintf(t, "class\tobjects\tAP\tAP50\tAP75\n")
	fmt.Fprintf(t, "all\t%d\t%s\t%s\t%s\n", r.Boxes, figure(r.AP), figure(r.AP50), figure(r.AP75))
	for _, c := range r.PerClass {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\n", c.Name, c.Boxes, figure(c.AP), figure(c.AP50), figure(c.AP75))
	}
	fmt.Fprintf(t, "\nAP of small objects %s, medium %s, large %s\n", figure(r.APSmall), figure(r.APMedium), figure(r.APLarge))
	if bad > 0 {
		fmt.Fprintf(t, "%d pictures could not be read and count as empty\n", bad)
	}
	return t.Flush()
}

// evalDocument is what --json prints. A figure that could not be measured is null.
type evalDocument struct {
	Model      string      `json:"model"`
	Images     int         `json:"images"`
	Failed     int         `json:"failed"`
	Objects    int         `json:"objects"`
	Detections int         `json:"detections"`
	AP         *float64    `json:"ap"`
	AP50       *float64    `json:"ap50"`
	AP75       *float64    `json:"ap75"`
	APSmall    *float64    `json:"ap_small"`
	APMedium   *float64    `json:"ap_medium"`
	APLarge    *float64    `json:"ap_large"`
	Classes    []evalClass `json:"classes"`
}

type evalClass struct {
	Class   string   `json:"class"`
	ClassID int      `json:"class_id"`
	Objects int      `json:"objects"`
	AP      *float64 `json:"ap"`
	AP50    *float64 `json:"ap50"`
	AP75    *float64 `json:"ap75"`
}

func writeEvalJSON(w io.Writer, model string, r eval.Result, bad int) error {
	measured := func(v float64) *float64 {
		if v < 0 {
			return nil
		}
		return &v
	}
	d := evalDocument{
		Model: model, Images: r.Images, Failed: bad, Objects: r.Boxes, Detections: r.Detections,
		AP: measured(r.AP), AP50: measured(r.AP50), AP75: measured(r.AP75),
		APSmall: measured(r.APSmall), APMedium: measured(r.APMedium), APLarge: measured(r.APLarge),
		Classes: []evalClass{},
	}
	for _, c := range r.PerClass {
		d.Classes = append(d.Classes, evalClass{c.Name, c.Class, c.Boxes, measured(c.AP), measured(c.AP50), measured(c.AP75)})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(d)
}
