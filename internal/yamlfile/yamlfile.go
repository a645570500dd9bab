// Package yamlfile reads YAML that comes from outside: configurations, sidecars, descriptions of
// datasets. It takes plain data only, in amounts that nobody reaches by hand, because the parser under it
// needs memory by the square of how deep a document nests: a few hundred kilobytes of brackets end
// the process. What is too deep or too long is refused before it is parsed.
//
// Errors are one line that starts with line and column: "3:7: unknown field ...".
package yamlfile

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Error is what is wrong at a place in a document. Lines and columns count from 1.
type Error struct {
	Line, Column int
	Msg          string
}

// Error returns "line:column: message".
func (e *Error) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Msg) }

// At returns an *Error at the place of n, which may be nil.
func At(n ast.Node, format string, args ...any) error {
	var t *token.Token
	if n != nil {
		t = n.GetToken()
	}
	return atToken(t, fmt.Sprintf(format, args...))
}

func atToken(t *token.Token, msg string) error {
	e := &Error{Line: 1, Column: 1, Msg: msg}
	if t != nil && t.Position != nil {
		e.Line, e.Column = t.Position.Line, t.Position.Column
	}
	return e
}

// Document is the one document of a file.
type Document struct {
	Body   ast.Node // nil for a document that holds nothing but comments
	tokens token.Tokens
}

// Parse reads a document of plain data: no anchors, aliases and tags, no second document, and no more
// than the limits of this package. Its error is an *Error.
func Parse(data []byte) (*Document, error) {
	if len(data) > MaxBytes {
		return nil, &Error{1, 1, fmt.Sprintf("%d bytes: at most %d are read", len(data), MaxBytes)}
	}
	d := &Document{}
	return d, d.guard(func() error {
		d.tokens = lexer.Tokenize(string(data))
		if err := check(d.tokens); err != nil {
			return err
		}
		file, err := parser.Parse(d.tokens, 0)
		if err != nil {
			return err
		}
		return d.take(file)
	})
}

// take keeps the body of a file's only document.
func (d *Document) take(file *ast.File) error {
	if len(file.Docs) > 1 {
		return At(file.Docs[1].Body, "a second document: only one is read")
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return nil
	}
	switch body := file.Docs[0].Body.(type) {
	case *ast.CommentGroupNode, *ast.NullNode:
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.DirectiveNode:
		return At(body, notPlain)
	default:
		d.Body = body
	}
	return nil
}

// Decode fills v, a pointer, from the document. Keys that v does not know are errors, and so are numbers
// that v could only take changed. Its error is an *Error.
func (d *Document) Decode(v any, opts ...yaml.DecodeOption) error {
	if d.Body == nil {
		return nil
	}
	return d.guard(func() error {
		if err := checkNumbers(d.Body, reflect.TypeOf(v)); err != nil {
			return err
		}
		return yaml.NodeToValue(d.Body, v, append(opts, yaml.Strict())...)
	})
}

// guard makes an *Error of what f returns, and of a panic: fuzzing finds documents, which nobody
// writes by hand, that the parser does not survive.
func (d *Document) guard(f func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = &Error{1, 1, "this YAML cannot be read"}
		}
	}()
	return d.explain(f())
}

// explain makes an *Error of the parser's errors. It never asks those for their text: that
// shows the source around the place and takes time by the square of its length.
func (d *Document) explain(err error) error {
	var own *Error
	var wrong *yaml.TypeError
	var theirs yaml.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return own
	case errors.As(err, &wrong) && wrong.Token != nil && wrong.DstType != nil:
		return atToken(wrong.Token, fmt.Sprintf("%.60q is not %s", wrong.Token.Value, kindOf(wrong.DstType)))
	case errors.As(err, &theirs):
		return atToken(theirs.GetToken(), oneLine(theirs.GetMessage()))
	}
	msg := oneLine(err.Error())
	return atToken(d.quoted(msg), msg)
}

// quoted returns the token whose value a message quotes: the parser loses the place of a value that
// the caller's own types refuse.
func (d *Document) quoted(msg string) *token.Token {
	_, rest, _ := strings.Cut(msg, `"`)
	value, _, _ := strings.Cut(rest, `"`)
	for _, t := range d.tokens {
		if t.Value == value && value != "" {
			return t
		}
	}
	return nil
}

// kindOf says in words what a value has to be.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "a group of keys"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	}
	return "a number"
}

// oneLine keeps a message short, too: some quote a whole value.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > maxMessage {
		s = string(runes[:maxMessage]) + "..."
	}
	return s
}

const maxMessage = 300

// Pairs returns the keys and values of a map, nil if n is none.
func Pairs(n ast.Node) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	return nil
}

// Scalar returns the text of a plain value as it was written, so that a name like no, 1.50 or 911 stays
// one; "" for null and for nothing. ok is false for lists and maps.
func Scalar(n ast.Node) (text string, ok bool) {
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return "", true
	case *ast.LiteralNode:
		if n.Value == nil {
			return "", true
		}
		return strings.TrimSpace(n.Value.Value), true
	case ast.ScalarNode:
		return n.GetToken().Value, true
	}
	return "", false
}
