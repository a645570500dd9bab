package claims

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// folderKey makes the test binary a process that claims 1 GiB in a folder and waits.
const folderKey = "EYAS_TEST_CLAIMS"

func TestMain(m *testing.M) {
	if dir := os.Getenv(folderKey); dir != "" {
		s := New(dir, "ppe", nil)
		err := s.Claim(func(others []Claim) (int64, error) { return 1 << 30, nil })
		fmt.Println("claimed", err)
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	goleak.VerifyTestMain(m)
}

// folder is where the tests' processes claim.
func folder(t testing.TB) string { return filepath.Join(t.TempDir(), "run", "claims") }

// claim makes a set with a claim, and returns what it has seen of others.
func claim(t testing.TB, dir, name string, bytes int64) (*Set, []Claim) {
	t.Helper()
	s := New(dir, name, func(text string) { t.Errorf("noted: %s", text) })
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, planned(t, s, bytes)
}

func planned(t testing.TB, s *Set, bytes int64) (seen []Claim) {
	t.Helper()
	if err := s.Claim(func(others []Claim) (int64, error) {
		seen = others
		return bytes, nil
	}); err != nil {
		t.Fatal(err)
	}
	return seen
}

func others(t testing.TB, s *Set) []Claim {
	t.Helper()
	list, err := s.Others()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestTwoOfOneProcess(t *testing.T) {
	dir := folder(t)
	first, seen := claim(t, dir, "ppe, faces\n", 1000)
	if len(seen) != 0 {
		t.Errorf("the first sees %+v", seen)
	}
	second, seen := claim(t, dir, "b", 500)
	want := Claim{PID: os.Getpid(), Name: "ppe, faces", Planned: 1000, Pending: 1000, Groups: groups()}
	if len(seen) != 1 || fmt.Sprint(seen[0]) != fmt.Sprint(want) {
		t.Errorf("the second sees %+v, want %+v", seen, want)
	}
	planned(t, first, 2000)
	if got := others(t, second); len(got) != 1 || got[0].Planned != 2000 {
		t.Errorf("after another plan of the first: %+v", got)
	}
	for range 2 {
		if err := first.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := others(t, second); len(got) != 0 {
		t.Errorf("after the first is closed: %+v", got)
	}
	if _, err := first.Others(); err == nil {
		t.Error("a closed set answers")
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", info, err)
	}
}

// Where the decision fails nothing changes.
func TestARefusal(t *testing.T) {
	dir := folder(t)
	first, _ := claim(t, dir, "a", 1000)
	second := New(dir, "b", nil)
	refused := errors.New("too much")
	for range 2 {
		if err := second.Claim(func([]Claim) (int64, error) { return 5000, refused }); !errors.Is(err, refused) {
			t.Errorf("got %v", err)
		}
		if got := others(t, first); len(got) != 0 {
			t.Errorf("the first sees %+v", got)
		}
	}
	planned(t, second, 10)
	_ = second.Claim(func([]Claim) (int64, error) { return 5000, refused })
	if got := others(t, first); len(got) != 1 || got[0].Planned != 10 {
		t.Errorf("the first sees %+v", got)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

// Of those that start at once each sees exactly the ones before it.
func TestAtOnce(t *testing.T) {
	dir := folder(t)
	const n = 8
	seen := make([]int, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			s := New(dir, "x", nil)
			t.Cleanup(func() { _ = s.Close() })
			if err := s.Claim(func(others []Claim) (int64, error) {
				seen[i] = len(others)
				return 1, nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	slices.Sort(seen)
	for i, got := range seen {
		if got != i {
			t.Fatalf("they saw %v others", seen)
		}
	}
}

// A process that is killed has no claim any more.
func TestAnotherProcess(t *testing.T) {
	dir := folder(t)
	s, _ := claim(t, dir, "b", 1)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), folderKey+"="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	got := others(t, s)
	killed := cmd.Process.Kill()
	_ = cmd.Wait()
	if err != nil || line != "claimed <nil>\n" || killed != nil {
		t.Fatalf("%q, %v, %v", line, err, killed)
	}
	if len(got) != 1 || got[0].PID != cmd.Process.Pid || got[0].Name != "ppe" || got[0].Planned != 1<<30 {
		t.Fatalf("got %+v", got)
	}
	if held := got[0].Planned - got[0].Pending; held < 1<<18 || held > 1<<28 { // a Go program holds some MiB
		t.Errorf("it holds %d bytes", held)
	}
	if got := others(t, s); len(got) != 0 {
		t.Errorf("after its death: %+v", got)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("%d files are left", len(left))
	}
}

// held writes a file that looks alive.
func held(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
}

// good is the text of a claim of a process in another container.
func good(t testing.TB, change func(*document)) string {
	d := document{Version: version, PID: 1, Space: "pid:[1]", Name: "n", Planned: 100, Resident: 30, Groups: []string{"1:2"}}
	if change != nil {
		change(&d)
	}
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestFiles(t *testing.T) {
	for _, c := range []struct {
		name string
		put  func(t *testing.T, path string)
		seen int
		note string // "" for none
		gone bool
	}{
		{"a claim", func(t *testing.T, p string) { held(t, p, good(t, nil)) }, 1, "", false},
		{"left over", func(t *testing.T, p string) { write(t, p, good(t, nil)) }, 0, "", true},
		{"left over, torn", func(t *testing.T, p string) { write(t, p, good(t, nil)[:20]) }, 0, "", true},
		{"torn", func(t *testing.T, p string) { held(t, p, good(t, nil)[:20]) }, 0, "no claim", false},
		{"empty", func(t *testing.T, p string) { held(t, p, "") }, 0, "no claim", false},
		{"huge", func(t *testing.T, p string) {
			held(t, p, "")
			if err := os.Truncate(p, 1<<40); err != nil {
				t.Skip(err)
			}
		}, 0, "more than 4096 bytes", false},
		{"of another version", func(t *testing.T, p string) { held(t, p, good(t, func(d *document) { d.Version = 2 })) }, 0, "version is 2", false},
		{"nonsense figures", func(t *testing.T, p string) { held(t, p, good(t, func(d *document) { d.Planned = -1 })) }, 0, "out of range", false},
		{"figures that overflow", func(t *testing.T, p string) { held(t, p, good(t, func(d *document) { d.Planned = 1 << 62 })) }, 0, "out of range", false},
		{"a group without a name", func(t *testing.T, p string) { held(t, p, good(t, func(d *document) { d.Groups = []string{""} })) }, 0, "no names", false},
		{"a folder", func(t *testing.T, p string) {
			if err := os.Mkdir(p, 0o700); err != nil {
				t.Fatal(err)
			}
		}, 0, "not a claim", false},
		{"a pipe", func(t *testing.T, p string) {
			if err := unix.Mkfifo(p, 0o600); err != nil {
				t.Skip(err)
			}
		}, 0, "not a claim", false},
		{"a link", func(t *testing.T, p string) {
			if err := os.Symlink("/dev/zero", p); err != nil {
				t.Fatal(err)
			}
		}, 0, "not a claim", false},
		{"another's", func(t *testing.T, p string) {
			write(t, p, good(t, nil))
			if err := os.Chown(p, 12345, 12345); err != nil {
				t.Skip("only root can give files away")
			}
		}, 0, "of this user", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "1-2.claim")
			c.put(t, path)
			var notes []string
			s := New(dir, "x", func(text string) { notes = append(notes, text) })
			for range 2 {
				if seen := planned(t, s, 1); len(seen) != c.seen {
					t.Errorf("seen: %+v", seen)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if want := min(len(c.note), 1); len(notes) != want || want == 1 && !strings.Contains(notes[0], c.note) {
				t.Errorf("notes %q, want %q once", notes, c.note)
			}
			if _, err := os.Lstat(path); (err != nil) != c.gone {
				t.Errorf("the file: %v", err)
			}
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Files that are no claims stay, however many there are.
func TestAFolderFullOfOthers(t *testing.T) {
	dir := t.TempDir()
	for i := range maxFiles + 10 {
		write(t, filepath.Join(dir, fmt.Sprintf("%d.txt", i)), "x")
	}
	var notes []string
	s := New(dir, "x", func(text string) { notes = append(notes, text) })
	planned(t, s, 1)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	left, _ := os.ReadDir(dir)
	if len(left) != maxFiles+10 || len(notes) != 1 || !strings.Contains(notes[0], "more than 1024 files") {
		t.Errorf("%d files, notes %q", len(left), notes)
	}
}

func TestFoldersThatCannotBeUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	open := t.TempDir()
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below"), open, link, "/proc/eyas"} {
		s := New(dir, "x", nil)
		if err := s.Claim(func([]Claim) (int64, error) { t.Error("decided"); return 0, nil }); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", dir, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Who keeps the folder locked makes others wait for a second and no longer.
func TestAFolderThatIsLocked(t *testing.T) {
	dir := t.TempDir()
	locked, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer locked.Close()
	if err := unix.Flock(int(locked.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s, start := New(dir, "x", nil), time.Now()
		if _, err := s.Others(); !errors.Is(err, unix.EWOULDBLOCK) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); took > lockTimeout+time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A folder that was cleaned up is made again.
func TestAFolderThatWasCleanedUp(t *testing.T) {
	dir := folder(t)
	first, _ := claim(t, dir, "a", 1000)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := first.Update(); err != nil {
		t.Fatal(err)
	}
	if _, seen := claim(t, dir, "b", 1); len(seen) != 1 || seen[0].Planned != 1000 {
		t.Errorf("seen: %+v", seen)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
}

// Update without a claim makes none.
func TestUpdate(t *testing.T) {
	dir := folder(t)
	s := New(dir, "a", nil)
	if err := s.Update(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("%d files", len(left))
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
