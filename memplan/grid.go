package memplan

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// grid is text in aligned columns: the first ones to the left, figures to the right.
type grid struct {
	left int // columns that are aligned to the left
	rows [][]string
}

// write writes the rows, two spaces between columns and none at the end of a line.
func (g grid) write(b *bytes.Buffer) {
	var widths []int
	for _, row := range g.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range g.rows {
		var line strings.Builder
		for i, cell := range row {
			if i > 0 {
				line.WriteString("  ")
			}
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i < g.left {
				line.WriteString(cell + pad)
			} else {
				line.WriteString(pad + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
}
