package main

import (
	"fmt"

	eyas "github.com/eyas-edge/eyas/runtime"
	"github.com/eyas-edge/eyas/runtime/metrics"
	"github.com/eyas-edge/eyas/runtime/web"
)

// pages is what a run serves over HTTP. A nil one is that of a run without --http.
type pages struct {
	server  *web.Server
	metrics *metrics.Metrics
}

// servePages serves the pages of a configuration that has an address for them, from before the models are loaded, and has
// the configuration ask for the pictures that somebody looks at.
func servePages(cfg *eyas.Config) (*pages, error) {
	if cfg.HTTP == "" {
		return nil, nil
	}
	if _, err := web.Address(cfg.HTTP); err != nil {
		return nil, exitError{exitUsage, err.Error()}
	}
	m := metrics.New(version)
	server, err := web.Listen(cfg.HTTP, web.Options{Metrics: m.Handler(cfg.Logger), Logger: cfg.Logger})
	if err != nil {
		return nil, exitError{exitMachine, err.Error()}
	}
	cfg.Wanted = server.Wanted
	cfg.Logger.Info(fmt.Sprintf("http://%s/ shows the cameras", server.Addr()))
	return &pages{server, m}, nil
}

// ready says that the models are warmed.
func (p *pages) ready(rt *eyas.Runtime) {
	if p != nil {
		p.metrics.Follow(rt)
		p.server.Ready(rt)
	}
}

// result takes a result before the next one comes.
func (p *pages) result(res *eyas.Result) {
	if p != nil {
		p.metrics.Observe(res)
		p.server.Add(res)
	}
}

func (p *pages) close() error {
	if p == nil {
		return nil
	}
	return p.server.Close()
}
