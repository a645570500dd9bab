package ring

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// children are the processes that tests start: this binary, told which to be.
var children = map[string]func(args []string) int{}

// childKey is the variable that makes this binary a child.
const childKey = "EYAS_RING_TEST_CHILD"

func TestMain(m *testing.M) {
	if child, ok := children[os.Getenv(childKey)]; ok {
		os.Exit(child(os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}
