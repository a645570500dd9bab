package main

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	eyas "github.com/eyas-edge/eyas/runtime"
)

func TestServePages(t *testing.T) {
	serve := func(addr string) (*pages, *eyas.Config, string, error) {
		var log strings.Builder
		cfg := &eyas.Config{HTTP: addr, Logger: slog.New(&textHandler{w: &log})}
		p, err := servePages(cfg)
		return p, cfg, log.String(), err
	}
	first, cfg, said, err := serve("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer first.close()
	if cfg.Wanted == nil {
		t.Error("the run is not asked for pictures")
	}
	url, _, _ := strings.Cut(strings.TrimPrefix(said, "eyas: "), " ")
	if got := body(t, url+"readyz"); !strings.Contains(got, "models") {
		t.Errorf("before it is ready it says %q", got)
	}
	first.ready(&eyas.Runtime{})
	if got := body(t, url+"readyz"); got != "ready\n" {
		t.Errorf("once it is ready it says %q", got)
	}
	first.result(&eyas.Result{Source: "door", Model: "ppe"})

	if _, _, _, err := serve(first.server.Addr()); exitCode(err) != exitMachine {
		t.Errorf("a port that is taken: %v, exit code %d", err, exitCode(err))
	}
	if _, _, _, err := serve("nowhere"); exitCode(err) != exitUsage {
		t.Errorf("what is no address: %v, exit code %d", err, exitCode(err))
	}
	none, _, _, err := serve("")
	none.ready(nil)
	none.result(nil)
	if err = errors.Join(err, none.close()); err != nil {
		t.Errorf("a run without pages: %v", err)
	}
}

func body(t *testing.T, url string) string {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
