package runtime

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/eyas-edge/eyas/memplan"
)

// Event is something that happened beside the results.
type Event struct {
	Kind   string // ready, source, warning or summary
	Time   time.Time
	Source string // the source it is about, "" for none
	Model  string // the model it is about, "" for none
	State  string // of a source: connecting, open, lost, ended or failed
	Text   string // for people

	Frames, Detections, Failed uint64         // of a summary
	Took                       time.Duration  // of a summary, and of ready: since Open was called
	Memory                     *memplan.Usage // of a summary; nil where nothing was planned
	Sources                    []SourceStatus // of a summary: the live ones
}

// AppendJSON appends the event as one line of JSON, without a line feed.
func (e *Event) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"event":`...)
	dst = appendString(dst, e.Kind)
	dst = append(dst, `,"time":"`...)
	dst = e.Time.UTC().AppendFormat(dst, "2006-01-02T15:04:05.000000Z07:00")
	dst = append(dst, '"')
	for _, f := range []struct{ key, value string }{
		{"source", e.Source}, {"model", e.Model}, {"state", e.State}, {"text", e.Text},
	} {
		if f.value != "" {
			dst = append(dst, `,"`...)
			dst = append(dst, f.key...)
			dst = append(dst, `":`...)
			dst = appendString(dst, f.value)
		}
	}
	if e.Kind == "summary" {
		dst = strconv.AppendUint(append(dst, `,"frames":`...), e.Frames, 10)
		dst = strconv.AppendUint(append(dst, `,"detections":`...), e.Detections, 10)
		dst = strconv.AppendUint(append(dst, `,"failed":`...), e.Failed, 10)
	}
	if e.Took > 0 {
		dst = appendMillis(append(dst, `,"took_ms":`...), e.Took)
	}
	if e.Memory != nil {
		if memory, err := json.Marshal(e.Memory); err == nil { // its numbers are all finite
			dst = append(append(dst, `,"memory":`...), memory...)
		}
	}
	if len(e.Sources) > 0 {
		dst = append(dst, `,"sources":[`...)
		for i := range e.Sources {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = e.Sources[i].appendJSON(dst)
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}
