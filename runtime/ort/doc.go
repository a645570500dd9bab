// Package ort runs models with ONNX Runtime. It is the only package of Eyas that
// touches ONNX Runtime and its C code.
//
// The library is found with Find and loaded once per process with Load; a Session
// is one model on one execution provider, a Binding the tensors of one caller.
// Running a binding whose outputs have fixed shapes allocates no Go memory. Several
// bindings of one session may run at the same time, each in its own goroutine.
//
// The binding github.com/yalue/onnxruntime_go owns environment, session options
// and sessions; the C code in shim.c calls the few entries that it does not reach.
// Tensors live on the host: a GPU provider copies them.
//
// With Options.OwnAllocator intermediate tensors come from our allocator: Binding.Record
// writes down what a run asks for, NewSchedule turns that into a problem that the
// caller solves (memplan.Solve), and Binding.Replay serves later runs from an Arena.
package ort
