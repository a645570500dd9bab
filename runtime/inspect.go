package runtime

import (
	"errors"

	"github.com/eyas-edge/eyas/models"
)

// Inspect says what a model is without loading ONNX Runtime. Errors wrap ErrModel, or ErrConfig where
// the configuration asks for what no model has.
func Inspect(cfg ModelConfig) (*models.Model, error) {
	path, err := resolve(cfg.Path)
	if err != nil {
		return nil, err
	}
	m, err := models.Load(path, models.Options{
		ImgSize: models.Size{cfg.ImgSize.H, cfg.ImgSize.W}, Labels: cfg.Labels, Family: cfg.Family,
	})
	if errors.Is(err, models.ErrOption) {
		return nil, as(ErrConfig, err)
	}
	return m, as(ErrModel, err)
}
