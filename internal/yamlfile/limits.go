package yamlfile

import "github.com/goccy/go-yaml/token"

// The limits. The parser notes on every value the keys that lead to it, and so takes memory by the
// product of their length and the number of values: a document at all limits takes 200 MB for a
// moment, one of the same size from a user's hand a tenth.
const (
	MaxBytes = 1 << 18 // of a document; 10,000 class names fit
	maxDepth = 32      // of lists and maps in each other
	maxPath  = 1 << 10 // bytes of all keys that lead to a value
)

const notPlain = "anchors, aliases and tags are not taken"

// level is a list or a map that is open where check stands.
type level struct {
	flow   bool // within brackets
	column int  // of its entries, where it is one by indentation
	key    int  // bytes of the key that stands last
}

// check looks at the tokens of a document, in one pass, for what must not reach the parser: what nests too
// deeply or has long keys, and what is more than plain data. (A few aliases of each other grow without
// bound.)
func check(tokens token.Tokens) error {
	var open []level
	for i, t := range tokens {
		var next token.Type
		if i+1 < len(tokens) {
			next = tokens[i+1].Type
		}
		key := 0
		switch t.Type {
		case token.AnchorType, token.AliasType, token.TagType, token.MergeKeyType:
			return atToken(t, notPlain)
		case token.SequenceStartType, token.MappingStartType:
			open = append(open, level{flow: true})
		case token.SequenceEndType, token.MappingEndType:
			open = closed(open)
			if next == token.MappingValueType {
				return atToken(t, "a key has to be plain text")
			}
		case token.SequenceEntryType, token.MappingKeyType:
			key = 1
		default:
			if next == token.MappingValueType {
				key = max(len(t.Value), 1)
			}
		}
		if key > 0 {
			open = entered(open, t.Position.Column, key)
		}
		if len(open) > maxDepth {
			return atToken(t, "nested too deeply")
		}
		if path(open) > maxPath {
			return atToken(t, "the keys are too long")
		}
	}
	return nil
}

// closed drops the innermost brackets, and what stands in them.
func closed(open []level) []level {
	for n := len(open) - 1; n >= 0; n-- {
		if open[n].flow {
			return open[:n]
		}
	}
	return open
}

// entered adds the list or map whose entry starts at a column, unless it is open already. It closes those
// that are indented more.
func entered(open []level, column, key int) []level {
	n := len(open)
	for n > 0 && !open[n-1].flow && open[n-1].column > column {
		n--
	}
	open = open[:n]
	if n == 0 || !open[n-1].flow && open[n-1].column < column {
		open = append(open, level{column: column})
	}
	open[len(open)-1].key = key
	return open
}

func path(open []level) int {
	n := 0
	for _, l := range open {
		n += l.key
	}
	return n
}
