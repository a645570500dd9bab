package runtime

import (
	"context"
	"fmt"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/models/decode"
	"github.com/eyas-edge/eyas/models/eval"
)

// The thresholds for measuring average precision, as COCO's: nearly every box counts, the best 100 of a
// picture.
const (
	EvalConf   = 0.001
	EvalMaxDet = 100
)

// Evaluate runs the model on every picture of truth and measures what it finds. path returns where
// a picture lies. A picture that cannot be read counts as one where nothing was found and is told
// to failed; progress, if not nil, is called after each picture.
//
// For figures that compare with others' open the model with Conf EvalConf and MaxDet EvalMaxDet.
func (m *Model) Evaluate(ctx context.Context, truth *eval.GroundTruth, path func(eval.Image) string,
	failed func(error), progress func(done, total int)) (eval.Result, error) {
	e, err := eval.New(truth)
	if err != nil {
		return eval.Result{}, err
	}
	var found []decode.Detection
	for i, image := range truth.Images {
		if err := ctx.Err(); err != nil {
			return eval.Result{}, err
		}
		found, err = m.evaluateOne(ctx, path(image), found[:0])
		if err != nil {
			failed(err)
		}
		if err := e.Add(image.ID, found); err != nil {
			return eval.Result{}, err
		}
		if progress != nil {
			progress(i+1, len(truth.Images))
		}
	}
	return e.Result(), nil
}

func (m *Model) evaluateOne(ctx context.Context, path string, dst []decode.Detection) ([]decode.Detection, error) {
	pic, err := camera.ReadFile(path, camera.MaxPixels(m.rt.cfg.MaxPixels))
	if err != nil {
		return dst, err
	}
	defer pic.Release()
	res, err := m.Detect(ctx, pic)
	if err != nil {
		return dst, fmt.Errorf("%s: %w", path, err)
	}
	for _, d := range res.Detections {
		dst = append(dst, decode.Detection{ClassID: d.ClassID, Score: d.Score, Box: d.Box})
	}
	return dst, nil
}
