package runtime

import (
	"fmt"

	"github.com/eyas-edge/eyas/models/decode"
)

// checkAfter is the number of pictures after which a model whose scores make no sense is said to be
// broken; a shorter run says so at its end.
const checkAfter = 8

// scoreCheck watches the highest raw score of a model's first pictures.
type scoreCheck struct {
	pictures int
	highest  float32
	said     bool
}

// count takes what was seen in a run of n pictures.
func (m *Model) count(s decode.Stats, n int) {
	m.mu.Lock()
	before := m.scores.pictures
	m.scores.pictures += n
	m.scores.highest = max(m.scores.highest, s.Highest)
	due := before < checkAfter && m.scores.pictures >= checkAfter || s.Highest > scoreLimit
	m.mu.Unlock()
	if due {
		m.checkScores(false)
	}
}

// scoreLimit leaves room for the rounding of quantised and half precision outputs.
const scoreLimit = 1.01

// suppressesItself says whether non-maximum suppression is in the graph: such a model answers with no
// score, or zeros, where there is nothing in the picture.
func (m *Model) suppressesItself() bool {
	switch m.info.Head.Kind {
	case decode.Rows, decode.FourOutput:
		return true
	}
	return m.info.ONNX.Stats(nil).Ops["NonMaxSuppression"] > 0
}

// checkScores says once what a broken quantised export shows only by running: scores that are
// all 0, or above 1.
func (m *Model) checkScores(end bool) {
	m.mu.Lock()
	c := m.scores
	var text string
	switch {
	case c.said || c.pictures == 0:
	case c.highest > scoreLimit:
		text = fmt.Sprintf("gives scores up to %.3g: its output is not a probability, results are clipped to 1; export it anew, or set sigmoid in its YAML file", c.highest)
	case (end || c.pictures >= checkAfter) && c.highest < 1e-6 && !m.suppressesItself():
		pictures := fmt.Sprintf("the first %d pictures", c.pictures)
		if c.pictures == 1 {
			pictures = "the one picture"
		}
		text = fmt.Sprintf("every score was 0 on %s: the export is broken (often a quantised one whose scores share a scale with its boxes); export it anew", pictures)
	}
	m.scores.said = c.said || text != ""
	m.mu.Unlock()
	if text != "" {
		m.rt.warn(m.key, "", text)
	}
}
