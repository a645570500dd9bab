package models

import (
	"os"
	"strings"
	"testing"
)

// The documentation names every family, and its sidecars are taken.
func TestDocs(t *testing.T) {
	data, err := os.ReadFile("../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(data)
	for _, f := range Families() {
		if !strings.Contains(doc, "`"+f+"`") {
			t.Errorf("docs/models.md does not name %s", f)
		}
	}
	blocks := strings.Split(doc, "```yaml\n")[1:]
	if len(blocks) != 2 {
		t.Fatalf("%d sidecars", len(blocks))
	}
	for _, b := range blocks {
		text, _, _ := strings.Cut(b, "```")
		if _, err := ParseSidecar("docs/models.md", []byte(text)); err != nil {
			t.Error(err)
		}
	}
}
