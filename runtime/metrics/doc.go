// Package metrics tells Prometheus how a run does: its sources, the time of its stages, its memory against the
// plan, and the process. docs/metrics.md lists all of it, as a test checks.
//
// Labels hold names of sources, models and classes as results show them, and words of ours: no text of an
// error and nothing else that could quote a password. Everything that is not bounded by the configuration is bounded
// here. Observing a result allocates nothing once its model and classes were seen.
package metrics
