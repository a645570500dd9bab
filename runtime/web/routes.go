package web

import (
	"fmt"
	"net/http"
	"strings"

	eyas "github.com/eyas-edge/eyas/runtime"
)

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.page)
	mux.HandleFunc("GET /page.css", asset("page.css"))
	mux.HandleFunc("GET /page.js", asset("page.js"))
	mux.HandleFunc("GET /view/{name}", s.view)
	mux.HandleFunc("GET /view/{$}", s.view) // ?name=..: a browser takes a path of dots away
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", s.ready)
	if s.options.Metrics != nil {
		mux.Handle("GET /metrics", s.options.Metrics)
	}
	return mux
}

const starting = "starting: the models are being loaded, planned and warmed"

func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	if s.runtime.Load() == nil {
		say(w, http.StatusServiceUnavailable, starting)
		return
	}
	say(w, http.StatusOK, "ready")
}

// say answers with one line.
func say(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	fmt.Fprintln(w, text)
}

// guard lets only requests through that came to the right place and bring nothing along, and has every answer say
// what a browser may do with it.
func (s *Server) guard(addr string, next http.Handler) http.Handler {
	headers := map[string]string{
		"Content-Security-Policy":      "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		"Cross-Origin-Resource-Policy": "same-origin", // no page of others shows the cameras
		"X-Content-Type-Options":       "nosniff",
		"X-Frame-Options":              "DENY",
		"Referrer-Policy":              "no-referrer",
		"Cache-Control":                "no-store",
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for key, value := range headers {
			w.Header().Set(key, value)
		}
		switch {
		case !mayAsk(r.Host, addr, s.listener.Addr()):
			say(w, http.StatusForbidden, "this server answers to localhost and its own address only")
		case r.ContentLength != 0:
			w.Header().Set("Connection", "close") // else the body would be read to find the next request
			say(w, http.StatusRequestEntityTooLarge, "a request has no body here")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// view streams the pictures of one source.
func (s *Server) view(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if name == "" {
		name = r.URL.Query().Get("name")
	}
	sources, ready := s.status()
	if !ready {
		say(w, http.StatusServiceUnavailable, starting)
		return
	}
	if _, known := find(sources, name); !known {
		say(w, http.StatusNotFound, unknown(name, sources))
		return
	}
	s.views.serve(w, r, name)
}

// unknown says that there is no source of that name, and which there are.
func unknown(name string, sources []eyas.SourceStatus) string {
	var b strings.Builder
	fmt.Fprintf(&b, "there is no source %q: known are", name)
	for i, st := range sources {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %q", st.Name)
	}
	return b.String()
}

// find returns the status of a source.
func find(sources []eyas.SourceStatus, name string) (eyas.SourceStatus, bool) {
	for _, st := range sources {
		if st.Name == name {
			return st, true
		}
	}
	return eyas.SourceStatus{}, false
}
