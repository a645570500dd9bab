package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/eyas-edge/eyas/camera"
	"github.com/eyas-edge/eyas/internal/shown"
)

// setLog chooses how errors, warnings and notes look on standard error.
func (e *env) setLog(format string, quiet bool) {
	level := slog.LevelInfo
	if quiet {
		level = slog.LevelError
	}
	if format == "json" {
		e.log = slog.New(slog.NewJSONHandler(e.lines, &slog.HandlerOptions{Level: level, ReplaceAttr: redact}))
		return
	}
	e.log = slog.New(&textHandler{w: e.lines, level: level})
}

// redact takes passwords out of what a JSON line quotes, before it is encoded, and what a terminal would obey.
func redact(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString, slog.KindAny:
		a.Value = slog.StringValue(shown.Text(camera.Redact(a.Value.String())))
	}
	return a
}

// lineWriter is where lines for people go, each in one write: to standard error, or above a progress bar
// while there is one.
type lineWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lineWriter) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.w.Write(line); err != nil {
		return 0, err
	}
	return len(line), nil
}

// to sends the lines that follow to another writer.
func (l *lineWriter) to(w io.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.w = w
}

// textHandler writes a record as one plain line.
type textHandler struct {
	w     io.Writer
	level slog.Level
	attrs []slog.Attr
}

func (h *textHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level }

func (h *textHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString("eyas: ")
	if r.Level == slog.LevelWarn {
		b.WriteString("warning: ")
	}
	b.WriteString(r.Message)
	attr := func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		return true
	}
	for _, a := range h.attrs {
		attr(a)
	}
	r.Attrs(attr)
	line := camera.Redact(b.String()) // whatever it quotes, no password gets out
	_, err := io.WriteString(h.w, shown.Text(line)+"\n")
	return err
}

func (h *textHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &textHandler{w: h.w, level: h.level, attrs: append(h.attrs[:len(h.attrs):len(h.attrs)], attrs...)}
}

func (h *textHandler) WithGroup(string) slog.Handler { return h }
