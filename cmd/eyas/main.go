// Command eyas detects objects in pictures, clips and camera streams. Each command is one file;
// what it does lies in the packages that it calls.
package main

import (
	"os"
)

// version is set by the build.
var version = "dev"

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
