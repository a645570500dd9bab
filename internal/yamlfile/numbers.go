package yamlfile

import (
	"encoding"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// plainInteger is what every reader of YAML takes for the same number: 010 is 8 to some and 10 to others.
var plainInteger = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)$`)

// Whole returns the whole number that n is. It fails with an *Error for anything else, fractions included,
// and for numbers that tools read differently.
func Whole(n ast.Node) (int, error) {
	text, ok := Scalar(n)
	if !ok || text == "" {
		return 0, At(n, "a whole number is missing here")
	}
	if _, ok := n.(*ast.IntegerNode); ok {
		if err := plain(n); err != nil {
			return 0, err
		}
	}
	if !plainInteger.MatchString(text) {
		return 0, At(n, "%.60q is not a whole number", text)
	}
	v, err := strconv.Atoi(text)
	if err != nil {
		return 0, At(n, "%.60q is out of range", text)
	}
	return v, nil
}

// plain refuses integers that are not written in plain decimals.
func plain(n ast.Node) error {
	if text, _ := Scalar(n); !plainInteger.MatchString(text) {
		return At(n, "%.60q is read differently by different tools: write a plain decimal number", text)
	}
	return nil
}

// checkNumbers refuses what the decoder would change on its way into a number of t: it cuts fractions
// off and takes leading zeros for octal. Types that decode themselves see to that themselves, and what is of
// another kind than t is left to the decoder's own errors.
func checkNumbers(n ast.Node, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if decodesItself(t) {
		return nil
	}
	switch t.Kind() {
	case reflect.Int:
		switch n.(type) {
		case *ast.IntegerNode, *ast.FloatNode, *ast.StringNode:
			_, err := Whole(n)
			return err
		}
	case reflect.Float32, reflect.Float64:
		if _, ok := n.(*ast.IntegerNode); ok {
			return plain(n)
		}
	case reflect.Slice, reflect.Array:
		if list, ok := n.(*ast.SequenceNode); ok {
			for _, v := range list.Values {
				if err := checkNumbers(v, t.Elem()); err != nil {
					return err
				}
			}
		}
	case reflect.Map, reflect.Struct:
		for _, kv := range Pairs(n) {
			if to := valueType(t, kv.Key); to != nil {
				if err := checkNumbers(kv.Value, to); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// valueType returns the type that the value of a key has in a map or struct, nil for an unknown key.
func valueType(t reflect.Type, key ast.Node) reflect.Type {
	if t.Kind() == reflect.Map {
		return t.Elem()
	}
	name, _ := Scalar(key)
	for f := range t.Fields() {
		if tag, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); tag == name && tag != "-" {
			return f.Type
		}
	}
	return nil
}

func decodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) ||
		p.Implements(reflect.TypeFor[yaml.InterfaceUnmarshaler]()) ||
		p.Implements(reflect.TypeFor[yaml.NodeUnmarshaler]()) ||
		p.Implements(reflect.TypeFor[yaml.BytesUnmarshaler]())
}
