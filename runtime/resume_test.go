package runtime

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/eyas-edge/eyas/internal/testenv"
)

// The profiles of an earlier start are gone by where a few runs agree with them, and measured anew where they do not.
func TestSavedProfilesAreChecked(t *testing.T) {
	t.Setenv("EYAS_HOME", t.TempDir())
	labels := filepath.Join(t.TempDir(), "person.txt")
	if err := os.WriteFile(labels, []byte("person\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]Config{"no SLO": {}, "an SLO": {SLO: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			cfg.ORT = testenv.Library(t)
			cfg.Models = map[string]ModelConfig{"m": {Path: filepath.Join(testenv.Assets(t), "models", "yolox_nano_person_192.onnx"), Labels: labels}}
			start := func(change func(*Profile)) *Choice {
				rt, err := Open(t.Context(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				defer rt.Close()
				choice := rt.choice
				change(&rt.choice.Models[0].Profiles[0])
				rt.saveChoice()
				return &choice
			}
			same := func(*Profile) {}
			if start(func(p *Profile) { p.Alone.P50 *= 1000 }).Saved {
				t.Error("the first start has a profile of an earlier one")
			}
			if start(same).Saved {
				t.Error("a profile of a thousand times as long runs is trusted")
			}
			// A busy machine may have been fast then and slow now, but not again and again: each of these starts is held
			// against the one before.
			for range 20 {
				if now := start(same); now.Saved {
					if (cfg.SLO > 0) != (now.Why != "") || now.Lanes < 1 {
						t.Errorf("%+v", now)
					}
					return
				}
			}
			t.Error("no start trusts the one before")
		})
	}
}
