// Package machine reads facts about the machine: the CPUs and the memory that this
// process may really use, its processor, GPU and tools. `eyas doctor` prints them
// and the engine takes its thread count from them.
//
// Every reader takes the root of the file system, "/" outside of tests. What cannot
// be read is unknown - zero, false or an empty string - and never an error: doctor
// must work on a machine where everything is missing.
package machine
