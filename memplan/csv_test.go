package memplan

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// csvGood are files and what they hold; csvBad what refuses others. Both are seeds of the fuzz target.
var csvGood = map[string]struct {
	text string
	want []Buffer
}{
	"as written":    {"id,lower,upper,size\n0,3,7,1024\nb,-1,4,0\n", []Buffer{{ID: "0", Lower: 3, Upper: 7, Size: 1024}, {ID: "b", Lower: -1, Upper: 4}}},
	"another order": {"size,upper,lower,id\n8,2,1,x\n", []Buffer{{ID: "x", Lower: 1, Upper: 2, Size: 8}}},
	"alignment, offset": {"id,lower,upper,size,alignment,offset,hint,gaps\nx,1,2,8,64,128,7,\ny,1,2,8,,,,\n",
		[]Buffer{{ID: "x", Lower: 1, Upper: 2, Size: 8, Align: 64, Fixed: ptr(int64(128))}, {ID: "y", Lower: 1, Upper: 2, Size: 8}}},
	"spreadsheet":   {"\ufeffID, Lower ,upper,size\r\n\"a,b\", 1 ,2, 8\r\n", []Buffer{{ID: "a,b", Lower: 1, Upper: 2, Size: 8}}},
	"no line break": {"id,lower,upper,size\na,1,2,3", []Buffer{{ID: "a", Lower: 1, Upper: 2, Size: 3}}},
	"only a header": {"id,lower,upper,size\n", nil},
}

var csvBad = map[string]struct{ text, want string }{
	"empty":            {"", "problem is empty"},
	"no header":        {"0,3,7,1024\n", `column "0" is none of`},
	"column missing":   {"id,lower,size\n", "column upper is missing"},
	"column twice":     {"id,lower,upper,size,size\n", "column size is there twice"},
	"field missing":    {"id,lower,upper,size\na,1,2\n", "wrong number of fields"},
	"no number":        {"id,lower,upper,size\na,1,2,3\na,1,2,many\n", `line 3: size "many"`},
	"fraction":         {"id,lower,upper,size\na,1.5,2,3\n", `line 2: lower "1.5"`},
	"too large":        {"id,lower,upper,size\na,1,2,9223372036854775808\n", "line 2: size"},
	"empty field":      {"id,lower,upper,size\na,,2,3\n", "line 2: lower"},
	"gaps":             {"id,lower,upper,size,gaps\na,1,9,3,2-4\n", "gaps are not supported"},
	"quote left open":  {"id,lower,upper,size\n\"a,1,2,3\n", `"`},
	"too many buffers": {"id,lower,upper,size\n" + strings.Repeat("a,1,2,3\n", MaxBuffers+1), "more than 32768 buffers"},
	"too many bytes":   {"id,lower,upper,size\n\"" + strings.Repeat("a", maxCSV), "larger than 8388608 bytes"},
}

func TestReadCSV(t *testing.T) {
	for name, c := range csvGood {
		t.Run(name, func(t *testing.T) {
			p, err := ReadCSV(strings.NewReader(c.text))
			if err != nil || !reflect.DeepEqual(p.Buffers, c.want) {
				t.Errorf("%+v, %v, want %+v", p.Buffers, err, c.want)
			}
		})
	}
	for name, c := range csvBad {
		t.Run(name, func(t *testing.T) {
			if _, err := ReadCSV(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func FuzzReadCSV(f *testing.F) {
	for _, c := range csvGood {
		f.Add(c.text)
	}
	for _, c := range csvBad {
		if len(c.text) < 1000 {
			f.Add(c.text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ReadCSV(strings.NewReader(text))
		if err != nil {
			return
		}
		s, err := Greedy(p)
		if err != nil {
			return
		}
		if err := Validate(p, s); err != nil {
			t.Fatalf("%v: %s", err, fmt.Sprintf("%+v for %+v", s, p))
		}
	})
}
