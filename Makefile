# Eyas: make help lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help

VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
TIMEOUT  ?= 30m
FUZZTIME ?= 60s
PHOTO    ?= .deps/photos/sample1.jpg
ANNOTATED := build/annotated

# The real components that tests run beside Eyas: decoders, an RTSP server, OpenCV to compare with, a browser.
PARTS := ffmpeg libturbojpeg python3 python3-gi python3-opencv gir1.2-gst-rtsp-server-1.0 gstreamer1.0-tools gstreamer1.0-rtsp \
	gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-plugins-bad gstreamer1.0-plugins-ugly gstreamer1.0-libav \
	chromium-headless-shell

.PHONY: help run build fetch setup test race lint fuzz bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: fetch build ## fetch what is needed, build, find the faces in a photo
	bin/eyas run --save $(ANNOTATED) $(PHOTO)
	@echo "the annotated picture lies in $(ANNOTATED)/:" >&2; ls -1 $(ANNOTATED) >&2

build: ## build bin/eyas
	go build -trimpath -ldflags '-X main.version=$(VERSION)' -o bin/eyas ./cmd/eyas

fetch: ## put ONNX Runtime, the face model and photos into .deps, once
	@go run ./hack/fetch

setup: fetch
	@hack/need $(PARTS) || echo "make: going on without, tests that need one of them will skip" >&2

test: setup ## run every test
	go test -timeout $(TIMEOUT) ./...

race: setup ## run every test under the race detector
	go test -race -timeout $(TIMEOUT) ./...

lint: ## gofmt, go vet, staticcheck, and the packages that have to build without C
	@files=$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go')); \
		[ -z "$$files" ] || { echo "not formatted, run gofmt -w on:"; echo "$$files"; exit 1; }
	go vet ./...
	go tool staticcheck ./...
	CGO_ENABLED=0 go build ./memplan/... ./models/... ./camera/...
	go vet -tags media ./cmd/eyas ./camera/media/...
	go mod tidy -diff

fuzz: ## run every fuzz target for FUZZTIME (60s) each
	@hack/fuzz $(FUZZTIME)

bench: setup ## run every Go benchmark
	go test -run '^$$' -bench . -benchmem -timeout $(TIMEOUT) ./...

clean: ## remove what was built; .deps stays, so that nothing is fetched again
	rm -rf bin build
