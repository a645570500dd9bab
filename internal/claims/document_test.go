package claims

import (
	"os"
	"strings"
	"testing"
)

func TestPending(t *testing.T) {
	here, elsewhere := pidSpace(), "pid:[1]"
	if here == elsewhere || !strings.HasPrefix(here, "pid:") {
		t.Fatalf("this process lives in %q", here)
	}
	parent := resident(os.Getppid())
	if parent < 1<<12 {
		t.Fatalf("the parent holds %d bytes", parent)
	}
	const big = 1 << 40
	for _, c := range []struct {
		name string
		list []document
		want []int64 // pending; of big within the parent's growth meanwhile
	}{
		{"none", nil, nil},
		{"this process", []document{{PID: os.Getpid(), Space: here, Planned: 10, Resident: 5}}, []int64{10}},
		{"elsewhere, by its word", []document{{PID: os.Getppid(), Space: elsewhere, Planned: 100, Resident: 30}}, []int64{70}},
		{"elsewhere, more than planned", []document{{PID: 1, Space: elsewhere, Planned: 100, Resident: 130}}, []int64{0}},
		{"two of a process", []document{{PID: 1, Space: elsewhere, Planned: 100, Resident: 130}, {PID: 1, Space: elsewhere, Planned: 100, Resident: 130}}, []int64{0, 70}},
		{"two processes", []document{{PID: 1, Space: elsewhere, Planned: 100, Resident: 30}, {PID: 2, Space: elsewhere, Planned: 100, Resident: 30}}, []int64{70, 70}},
		{"seen here, whatever it says", []document{{PID: os.Getppid(), Space: here, Planned: big, Resident: big}}, []int64{big - parent}},
		{"seen here, gone", []document{{PID: 1 << 30, Space: here, Planned: big, Resident: big}}, []int64{big}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := pending(c.list)
			if len(got) != len(c.want) {
				t.Fatalf("got %+v", got)
			}
			for i, want := range c.want {
				if diff := got[i].Pending - want; diff < -1<<30 || diff > 1<<30 || want < big/2 && diff != 0 {
					t.Errorf("claim %d: %d bytes pending, want %d", i, got[i].Pending, want)
				}
			}
		})
	}
}

func TestPendingOfAGroup(t *testing.T) {
	all := []Claim{{Pending: 1, Groups: []string{"a", "b"}}, {Pending: 10, Groups: []string{"b", "b"}}, {Pending: 100}}
	for group, want := range map[string]int64{"": 111, "a": 1, "b": 11, "c": 0} {
		if got := Pending(all, group); got != want {
			t.Errorf("group %q: %d, want %d", group, got, want)
		}
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{"ppe, faces": "ppe, faces", "a\x1b[0m\n\u2028\xff": "a[0m", "": "", strings.Repeat("é", 150): strings.Repeat("é", 100)} {
		if got := printable(in); got != want {
			t.Errorf("%q gives %q", in, got)
		}
	}
}

// FuzzParse: what is accepted can be added up and printed.
func FuzzParse(f *testing.F) {
	f.Add([]byte(good(f, nil)))
	f.Add([]byte(`{"eyas_claim":1,"pid":1,"planned_bytes":1e3,"groups":["x"]}`))
	f.Add([]byte(`{"eyas_claim":1,"pid":1,"name":"\u001b[0m","groups":null}`))
	f.Add([]byte(strings.Repeat("[", 5000)))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := parse(data)
		if err != nil {
			return
		}
		if len(d.Name) > maxName || strings.ContainsAny(d.Name, "\n\r\x1b\x00") {
			t.Errorf("name %q", d.Name)
		}
		for _, c := range pending([]document{*d, *d}) {
			if c.Pending < 0 || c.Pending > c.Planned || c.Planned > maxPlanned {
				t.Errorf("%+v", c)
			}
		}
	})
}
