package main

import (
	"strings"

	"github.com/alecthomas/kong"
)

// flagsFirst moves the flags of a command before its other arguments: the parser takes a row of sources only
// with no flag in between, and people write `eyas run a.jpg --conf 0.5 b.jpg`.
func flagsFirst(root *kong.Application, args []string) []string {
	takesValue, ok := valueFlags(root, args)
	if !ok {
		return args
	}
	flags, rest := []string{args[0]}, []string(nil)
	for i := 1; i < len(args); i++ {
		switch a := args[i]; {
		case a == "--":
			rest = append(append([]string{a}, rest...), args[i+1:]...)
			return append(flags, rest...)
		case len(a) < 2 || a[0] != '-':
			rest = append(rest, a)
		case !wantsNext(a, takesValue):
			flags = append(flags, a)
		case i+1 == len(args):
			rest = append(rest, a) // stays the last: no source is to be taken for its value
		default:
			i++
			flags = append(flags, a, args[i])
		}
	}
	return append(flags, rest...)
}

// valueFlags says of each flag of the command in args, as "--name" and "-n", whether it takes a value.
func valueFlags(root *kong.Application, args []string) (takes map[string]bool, ok bool) {
	for _, command := range root.Leaves(true) {
		if command.Name != args[0] {
			continue
		}
		takes = map[string]bool{}
		for _, group := range command.AllFlags(true) {
			for _, f := range group {
				takes["--"+f.Name] = !f.IsBool()
				if f.Short != 0 {
					takes["-"+string(f.Short)] = !f.IsBool()
				}
			}
		}
		return takes, true
	}
	return nil, false
}

// wantsNext says whether the value of a flag is the argument behind it: --conf, -m, -qm; not --conf=1, -mfile.
func wantsNext(flag string, takesValue map[string]bool) bool {
	if strings.HasPrefix(flag, "--") {
		return takesValue[flag]
	}
	for i, short := range flag[1:] {
		if takesValue["-"+string(short)] {
			return 1+i+len(string(short)) == len(flag)
		}
	}
	return false
}
