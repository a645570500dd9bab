package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// giveUpAfter is how long a process that was told to stop may take, whatever it is doing: a model that is being
// loaded cannot be interrupted. Results are written line by line, so that none is lost.
const giveUpAfter = 1900 * time.Millisecond

// signals turns the first SIGINT, SIGTERM or SIGHUP into a cancelled context; a second SIGINT or SIGTERM ends the
// process at once, as if nothing had been caught. A SIGHUP that nohup has ignored stays so.
type signals struct {
	ctx    context.Context
	cancel context.CancelFunc
	ch     chan os.Signal
	done   chan struct{}
	mu     sync.Mutex
	got    syscall.Signal
	late   *time.Timer
	pipe   chan os.Signal
}

func watchSignals() *signals {
	s := &signals{ch: make(chan os.Signal, 1), done: make(chan struct{}), pipe: make(chan os.Signal, 1)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	signal.Notify(s.ch, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(s.ch, syscall.SIGHUP)
		signal.Notify(s.pipe, syscall.SIGHUP) // when a terminal goes the kernel sends one, and its shell another
	}
	// Caught and never looked at: a write to a closed standard output fails then, instead of ending the process
	// before a recording is finished. Children start with the default again, which ignoring would not give them.
	signal.Notify(s.pipe, syscall.SIGPIPE)
	go func() {
		defer close(s.done)
		sig, ok := <-s.ch
		if !ok {
			return
		}
		signal.Stop(s.ch)
		s.mu.Lock()
		s.got, _ = sig.(syscall.Signal)
		s.late = time.AfterFunc(giveUpAfter, func() { os.Exit(128 + int(s.received())) })
		s.mu.Unlock()
		s.cancel()
	}()
	return s
}

// received returns the signal that ended the run, 0 if none did.
func (s *signals) received() syscall.Signal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got
}

func (s *signals) stop() {
	signal.Stop(s.pipe)
	signal.Stop(s.ch)
	close(s.ch)
	<-s.done
	if s.late != nil {
		s.late.Stop()
	}
	s.cancel()
}
