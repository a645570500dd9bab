// Package web is the HTTP server of a run: a page that lists the cameras, a view of each as MJPEG with the
// boxes of the newest frame, whether the process is alive and ready, and metrics.
//
// It has no users and no encryption: it listens on the loopback address unless told otherwise. A view
// costs nothing while nobody looks: pictures are copied, drawn and encoded only for viewers, once for all viewers
// of a source and at most ten times a second.
package web
