package bench

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The test binary is also the child: a measuring one, or one that misbehaves. It cannot be told by the environment,
// which a child does not get.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && strings.HasPrefix(os.Args[1], "child") {
		os.Exit(act(os.Args[1]))
	}
	goleak.VerifyTestMain(m)
}

func act(as string) int {
	switch as {
	case "child":
		if err := Child(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	case "child-hangs":
		time.Sleep(time.Hour)
	case "child-fails":
		fmt.Fprintln(os.Stderr, "no memory left")
		return 3
	case "child-babbles":
		fmt.Println("hello")
	case "child-floods":
		for {
			if _, err := os.Stdout.WriteString(strings.Repeat("a", 1<<16)); err != nil {
				return 1
			}
		}
	case "child-empty":
		fmt.Println("{}")
	case "child-refuses":
		fmt.Println(`{"error":"model x: it is broken","kind":"model"}`)
	}
	return 0
}

func self(as string) []string { return []string{os.Args[0], as} }
