package ort

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// bindingDir returns the directory of the binding's module, which carries the C
// header and a library for arm64.
func bindingDir(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/yalue/onnxruntime_go").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// The slot numbers in shim.h are those of struct OrtApi in the header, and the API
// version is the one that the binding asks for.
func TestSlots(t *testing.T) {
	header, err := os.ReadFile(filepath.Join(bindingDir(t), "onnxruntime_c_api.h"))
	if err != nil {
		t.Fatal(err)
	}
	slots, version := apiSlots(t, string(header))
	shim, err := os.ReadFile("shim.h")
	if err != nil {
		t.Fatal(err)
	}
	used := regexp.MustCompile(`EYAS_SLOT_(\w+) = (\d+)`).FindAllStringSubmatch(string(shim), -1)
	if len(used) < 20 {
		t.Fatalf("only %d slots found in shim.h", len(used))
	}
	for _, u := range used {
		if n, _ := strconv.Atoi(u[2]); slots[u[1]] != n || (n == 0 && u[1] != "CreateStatus") {
			t.Errorf("%s is slot %d, not %s", u[1], slots[u[1]], u[2])
		}
	}
	if version != minMinor {
		t.Errorf("the binding speaks API %d, minMinor is %d", version, minMinor)
	}
	if !strings.Contains(string(shim), "EYAS_API_VERSION = "+strconv.Itoa(version)) {
		t.Errorf("shim.h does not speak API %d", version)
	}
}

// apiSlots numbers the members of struct OrtApi. Each is declared in one of four
// ways, all of them listed in the pattern; the count is checked against the
// semicolons, so that a fifth way cannot shift the numbers unseen.
func apiSlots(t *testing.T, header string) (slots map[string]int, version int) {
	_, body, ok := strings.Cut(header, "\nstruct OrtApi {\n")
	body, _, ok2 := strings.Cut(body, "\n};")
	if !ok || !ok2 {
		t.Fatal("no struct OrtApi in the header")
	}
	body = regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAllString(body, "")
	body = regexp.MustCompile(`//[^\n]*`).ReplaceAllString(body, "")
	member := regexp.MustCompile(`ORT_API2_STATUS\(\s*(\w+)|ORT_CLASS_(RELEASE\(\s*\w+)|\(\s*ORT_API_CALL\s*\*\s*(\w+)\s*\)|ORT_API_T\(\s*[^,]+,\s*(\w+)`)
	slots = map[string]int{}
	all := member.FindAllStringSubmatch(body, -1)
	for i, m := range all {
		name := m[1] + m[3] + m[4]
		if m[2] != "" {
			name = "Release" + strings.TrimSpace(strings.TrimPrefix(m[2], "RELEASE("))
		}
		slots[name] = i
	}
	if n := strings.Count(body, ";"); n != len(all) {
		t.Fatalf("struct OrtApi has %d members, %d were recognised", n, len(all))
	}
	v := regexp.MustCompile(`#define ORT_API_VERSION (\d+)`).FindStringSubmatch(header)
	if v == nil {
		t.Fatal("no ORT_API_VERSION in the header")
	}
	version, _ = strconv.Atoi(v[1])
	return slots, version
}
