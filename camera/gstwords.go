package camera

import "strings"

// splitWords splits a pipeline into the arguments of gst-launch-1.0 as a shell would that replaces nothing: at blanks that
// do not stand in quotes or behind a backslash, which are taken away. So what works behind gst-launch-1.0 on a command line
// works here.
func splitWords(text string) (words []string, err error) {
	var word strings.Builder
	var quote byte
	open := false // a word has begun, though it may be empty
	for i := 0; i < len(text); i++ {
		b := text[i]
		switch {
		case b == '\\' && quote != '\'' && i+1 < len(text) && (quote == 0 || strings.IndexByte("\"\\$`", text[i+1]) >= 0):
			i++
			word.WriteByte(text[i])
			open = true
		case quote != 0 && b == quote:
			quote = 0
		case quote == 0 && (b == '"' || b == '\''):
			quote, open = b, true
		case quote == 0 && strings.IndexByte(" \t\r\n", b) >= 0:
			if open {
				words = append(words, word.String())
			}
			word.Reset()
			open = false
		default:
			word.WriteByte(b)
			open = true
		}
	}
	if quote != 0 {
		return nil, badSpec("the pipeline has a %c without its second one", quote)
	}
	if strings.IndexByte(text, 0) >= 0 {
		return nil, badSpec("the pipeline has a zero byte")
	}
	if open {
		words = append(words, word.String())
	}
	return words, nil
}
