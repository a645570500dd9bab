package runtime

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/eyas-edge/eyas/models"
	"github.com/eyas-edge/eyas/models/onnx"
	"github.com/eyas-edge/eyas/runtime/cache"
	"github.com/eyas-edge/eyas/runtime/ort"
)

// unfix rewrites a model for one picture to one for any number, if batches of several are wanted. Where it cannot be done, or
// the results differ, the model stays as it is, and it is said why.
func (m *Model) unfix(ctx context.Context) {
	fixed := m.info.Input.Batch
	asked := fixed > 0 && slices.ContainsFunc(m.rt.cfg.Batch, func(n int) bool { return n != fixed })
	if !asked && (fixed != 1 || !m.rt.free() || m.info.MixesBatch) {
		return
	}
	text := fmt.Sprintf("runs %d at once and nothing else", fixed)
	if m.info.ONNX.Graph.Inputs[m.info.Input.Index].Shape[0].Size == fixed { // else it declares any number, and does not run it
		found, err := m.tryDynamic(ctx)
		if err == nil {
			m.rt.log.Info(fmt.Sprintf("model %s: rewritten to a dynamic batch (%v)", m.key, found))
			return
		}
		text += fmt.Sprintf(" (it cannot be rewritten to a dynamic batch: %v)", err)
	}
	switch {
	case ctx.Err() != nil: // which is said elsewhere
	case asked:
		m.rt.warn(m.key, "", fmt.Sprintf("%s: it is planned for that and not for batches of %v", text, m.rt.cfg.Batch))
	default:
		m.rt.log.Info(fmt.Sprintf("model %s: %s", m.key, text))
	}
}

// tryDynamic makes the rewritten model the one that runs, once its results were found to be those of the model as it is.
func (m *Model) tryDynamic(ctx context.Context) (*comparison, error) {
	graph, err := m.dynamic(m.info.ONNX)
	if err != nil {
		return nil, err
	}
	many := *m.info
	many.ONNX, many.Input.Batch = graph, 0
	found := &comparison{} // for an estimate, which runs nothing
	if m.rt.library != nil {
		if found, err = m.compared(ctx, &many); err != nil {
			return nil, err
		}
	}
	if found.Why == "" {
		m.info = &many
		return found, nil
	}
	return nil, errors.New(found.Why)
}

// dynamic returns the model's graph for any number of pictures.
func (m *Model) dynamic(graph *onnx.Model) (*onnx.Model, error) {
	inputs := []string{m.info.Input.Name}
	if i := m.info.SizeInput; i >= 0 {
		inputs = append(inputs, graph.Graph.Inputs[i].Name)
	}
	return graph.DynamicBatch(inputs...)
}

// openPlain makes a session of a model's file, or of what it was rewritten to. The file is read again for that: by the time
// that a second session is made the weights have been let go.
func (m *Model) openPlain(info *models.Model, o ort.Options) (*ort.Session, error) {
	if !info.ONNX.Rewritten {
		return m.rt.library.OpenFile(info.Path, o)
	}
	graph, err := onnx.Open(info.Path)
	if err == nil {
		graph, err = m.dynamic(graph)
	}
	if err != nil {
		return nil, err
	}
	data, err := graph.Marshal()
	if err != nil {
		return nil, err
	}
	o.Folder = filepath.Dir(info.Path)
	return m.rt.library.Open(m.key, data, o)
}

// id names, for keys, what runs: the files of the model, and what they were rewritten to.
func (m *Model) id() string {
	return string(m.hash[:]) + strings.Join(m.rewrite(), "")
}

// rewrite returns what was made of the model's file, as facts for a key: none where it runs as it is.
func (m *Model) rewrite() []string {
	if !m.info.ONNX.Rewritten {
		return nil
	}
	return []string{"dynamic batch " + strconv.Itoa(onnx.DynamicBatchVersion)}
}

// compared returns what an earlier start has found of the rewritten model, or what this one finds.
func (m *Model) compared(ctx context.Context, many *models.Model) (*comparison, error) {
	key := cache.NewKey("dynamic batch", strconv.Itoa(onnx.DynamicBatchVersion), string(m.hash[:]), cache.Engine(m.rt.library))
	var kept comparison
	if m.hashed() && m.rt.recall(key, &kept) && kept.Version == comparisonVersion {
		return &kept, nil
	}
	found, err := m.compare(ctx, many)
	if err == nil && m.hashed() {
		_ = m.rt.keep(key, found) // what cannot be kept is found again
	}
	return found, err
}
