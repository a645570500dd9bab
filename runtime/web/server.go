package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	eyas "github.com/eyas-edge/eyas/runtime"
)

// Runtime is what the pages tell of.
type Runtime interface {
	// Status says how each source is doing.
	Status() []eyas.SourceStatus
}

// Options say what the server does beside its pages. The zero value works.
type Options struct {
	// Metrics answers /metrics. It defaults to nothing being there.
	Metrics http.Handler
	// Viewers is the most people who look at the same time, of all sources together. It defaults to 100.
	Viewers int
	// Logger takes what goes wrong beside the answers. It defaults to none.
	Logger *slog.Logger
}

const (
	// maxConnections bounds what strangers can make the process hold, beside the viewers.
	maxConnections = 64
	maxHeader      = 16 << 10
	headerWithin   = 5 * time.Second
	answerWithin   = 10 * time.Second // also a part of a view
	idleFor        = time.Minute
	closeWithin    = 800 * time.Millisecond
)

// Server serves the pages of one run.
type Server struct {
	options  Options
	listener net.Listener
	server   http.Server
	views    views
	runtime  atomic.Pointer[Runtime] // nil until the run is ready
	served   chan struct{}
	closing  sync.Once
}

// Listen serves on addr (see Address) until Close. Before Ready was called there is nothing to look at, and
// /readyz says so.
func Listen(addr string, o Options) (*Server, error) {
	addr, err := Address(addr)
	if err != nil {
		return nil, err
	}
	if o.Viewers == 0 {
		o.Viewers = 100
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{options: o, served: make(chan struct{})}
	s.views.start(s.status, o.Viewers)
	if s.listener, err = listen(addr); err != nil {
		return nil, err
	}
	s.server = http.Server{
		Handler:           s.guard(addr, s.routes()),
		ReadHeaderTimeout: headerWithin, // a time-out on all of reading would end views, too
		WriteTimeout:      answerWithin,
		IdleTimeout:       idleFor,
		MaxHeaderBytes:    maxHeader,
		ConnState:         limitConnections(maxConnections + o.Viewers),
		ErrorLog:          slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
	}
	go func() {
		defer close(s.served)
		if err := s.server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			s.options.Logger.Warn(fmt.Sprintf("http %s: %v: metrics and views are gone until the next start", addr, err))
		}
	}()
	return s, nil
}

// limitConnections closes new connections beyond most.
func limitConnections(most int) func(net.Conn, http.ConnState) {
	var open atomic.Int64
	return func(c net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			if open.Add(1) > int64(most) {
				c.Close()
			}
		case http.StateClosed, http.StateHijacked:
			open.Add(-1)
		}
	}
}

// Addr returns the address that is listened on, with the port that port 0 became.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Ready says that the models are warmed and rt's sources are what there is to see.
func (s *Server) Ready(rt Runtime) { s.runtime.Store(&rt) }

// status returns how the sources are doing, and false before the run is ready.
func (s *Server) status() ([]eyas.SourceStatus, bool) {
	rt := s.runtime.Load()
	if rt == nil {
		return nil, false
	}
	return (*rt).Status(), true
}

// Close ends all views, with a last picture that says so, and returns within a second. It may be called
// twice.
func (s *Server) Close() error {
	var err error
	s.closing.Do(func() {
		s.views.close()
		ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
		defer cancel()
		if err = s.server.Shutdown(ctx); err != nil { // somebody does not read
			err = s.server.Close()
		}
		<-s.served
		s.views.wait()
	})
	return err
}
