package memplan

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// maxCSV is the most that ReadCSV reads, in bytes: 256 for each buffer that a problem may have.
const maxCSV = MaxBuffers * 256

// csvColumns are the columns of MiniMalloc's files, in its own order. The first four have to be there. A hint
// is where MiniMalloc would look first; it changes no answer and is skipped.
var csvColumns = []string{"id", "lower", "upper", "size", "alignment", "offset", "hint", "gaps"}

// ReadCSV reads a problem as google/minimalloc writes it: a header that names the columns id, lower, upper,
// size and perhaps alignment and offset (a fixed one), in any order, and a line for each buffer. An empty
// optional field is as good as none. Gaps (times at which a living buffer is not needed) are refused.
func ReadCSV(r io.Reader) (Problem, error) {
	limited := &io.LimitedReader{R: r, N: maxCSV + 1}
	// csv.Reader answers a torn last line with a syntax error: what was cut off has to be told first.
	tooLarge := func(err error) error {
		if limited.N <= 0 {
			return fmt.Errorf("problem is larger than %d bytes", maxCSV)
		}
		return err
	}
	rows := csv.NewReader(bufio.NewReader(limited))
	rows.ReuseRecord, rows.TrimLeadingSpace = true, true
	header, err := rows.Read()
	if errors.Is(err, io.EOF) {
		return Problem{}, errors.New("problem is empty: the first line has to name the columns id,lower,upper,size")
	}
	if err != nil {
		return Problem{}, tooLarge(err)
	}
	columns, err := csvHeader(header)
	if err != nil {
		return Problem{}, err
	}
	var p Problem
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return p, tooLarge(nil)
		}
		if err != nil {
			return Problem{}, tooLarge(err)
		}
		if len(p.Buffers) == MaxBuffers {
			return Problem{}, fmt.Errorf("problem has more than %d buffers", MaxBuffers)
		}
		b, err := csvBuffer(columns, row)
		if err != nil {
			line, _ := rows.FieldPos(0)
			return Problem{}, tooLarge(fmt.Errorf("line %d: %w", line, err))
		}
		p.Buffers = append(p.Buffers, b)
	}
}

// csvHeader returns the name of each column.
func csvHeader(header []string) ([]string, error) {
	var columns []string
	for i, name := range header {
		if i == 0 {
			name = strings.TrimPrefix(name, "\ufeff") // spreadsheets begin their files with it
		}
		name = strings.ToLower(strings.TrimSpace(name))
		switch {
		case !slices.Contains(csvColumns, name):
			return nil, fmt.Errorf("column %.40q is none of %s", name, strings.Join(csvColumns, ", "))
		case slices.Contains(columns, name):
			return nil, fmt.Errorf("column %s is there twice", name)
		}
		columns = append(columns, name)
	}
	for _, name := range csvColumns[:4] {
		if !slices.Contains(columns, name) {
			return nil, fmt.Errorf("column %s is missing: the first line has to name id,lower,upper,size", name)
		}
	}
	return columns, nil
}

func csvBuffer(columns, row []string) (Buffer, error) {
	var b Buffer
	for i, name := range columns {
		text := strings.TrimSpace(row[i])
		if text == "" && !slices.Contains(csvColumns[:4], name) {
			continue
		}
		switch name {
		case "id":
			b.ID = strings.Clone(text) // the reader uses its memory again
			continue
		case "hint":
			continue
		case "gaps":
			return Buffer{}, errors.New("gaps are not supported: make a buffer of each part of the lifetime")
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return Buffer{}, fmt.Errorf("%s %.40q is no whole number of 64 bits", name, text)
		}
		switch name {
		case "lower":
			b.Lower = int(n)
		case "upper":
			b.Upper = int(n)
		case "size":
			b.Size = n
		case "alignment":
			b.Align = n
		case "offset":
			b.Fixed = &n
		}
	}
	return b, nil
}
