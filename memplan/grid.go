package memplan

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// grid is text in aligned columns. The asterisks behind a figure hang over, so that the figures stay aligned.
type grid struct {
	align string // of each column: l to the left, else, and where there is no letter, to the right
	rows  [][]string
}

// write writes the rows, two spaces between columns and none at the end of a line.
func (g grid) write(b *bytes.Buffer) {
	var widths, marks []int
	for _, row := range g.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths, marks = append(widths, 0), append(marks, 0)
			}
			text := strings.TrimRight(cell, "*")
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
			marks[i] = max(marks[i], len(cell)-len(text))
		}
	}
	for _, row := range g.rows {
		var line strings.Builder
		for i, cell := range row {
			if i > 0 {
				line.WriteString("  ")
			}
			text := strings.TrimRight(cell, "*")
			before := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text))
			after := strings.Repeat(" ", marks[i]-(len(cell)-len(text)))
			if i < len(g.align) && g.align[i] == 'l' {
				before, after = "", before+after
			}
			line.WriteString(before + cell + after)
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
}
