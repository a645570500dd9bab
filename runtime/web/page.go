package web

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	eyas "github.com/eyas-edge/eyas/runtime"
)

//go:embed page.html page.css page.js
var files embed.FS

var pageTemplate = template.Must(template.ParseFS(files, "page.html"))

// row is a camera of the page.
type row struct {
	eyas.SourceStatus
	View    string // path of its view
	Size    string
	Rates   string
	Latency string
	Drops   string
	Causes  string // of the drops
}

// page lists the cameras.
func (s *Server) page(w http.ResponseWriter, _ *http.Request) {
	sources, ready := s.status()
	var data struct {
		Ready    bool
		Starting string
		Open     int
		Rows     []row
	}
	data.Ready, data.Starting = ready, starting
	for _, st := range sources {
		if st.State == "open" {
			data.Open++
		}
		data.Rows = append(data.Rows, rowOf(st))
	}
	var body bytes.Buffer
	if err := pageTemplate.Execute(&body, data); err != nil {
		s.options.Logger.Warn("http: the page of cameras: " + err.Error())
		say(w, http.StatusInternalServerError, "the page cannot be made")
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(body.Bytes()) // who has gone does not need it
}

func rowOf(st eyas.SourceStatus) row {
	r := row{SourceStatus: st, View: viewPath(st.Name)}
	if st.Width > 0 {
		r.Size = fmt.Sprintf("%d×%d %s", st.Width, st.Height, st.Format)
	}
	r.Rates = fmt.Sprintf("%.1f → %.1f", st.FPSIn, st.FPSOut)
	if st.Age > 0 {
		r.Latency = fmt.Sprintf("%.1f ms", float64(st.Age)/float64(time.Millisecond))
	}
	var causes []string
	st.Dropped.Each(func(cause string, n uint64) {
		if n > 0 {
			causes = append(causes, fmt.Sprintf("%d %s", n, cause))
		}
	})
	r.Drops, r.Causes = fmt.Sprint(st.Dropped.Total()), strings.Join(causes, ", ")
	return r
}

// viewPath returns the path of a source's view.
func viewPath(name string) string {
	if name == "." || name == ".." { // a browser goes up there, escaped or not
		return "/view/?name=" + name
	}
	return "/view/" + url.PathEscape(name)
}

// asset answers with a file of the page.
func asset(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, files, name) }
}
