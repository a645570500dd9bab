package machine

import (
	"fmt"
	"slices"
	"strings"
)

// Clocks says how fast the processors may run, in one line that is compared and not read: governor and highest
// frequency in kHz of each kind of processor that there is. It is empty where the system does not tell, as in most virtual
// machines. What is below root is read; at most a hundred processors are looked at.
func Clocks(root string) string {
	fs := files{root}
	var kinds []string
	for _, dir := range fs.glob("sys/devices/system/cpu/cpu[0-9]*/cpufreq") {
		cpu := files{dir}
		kind := fmt.Sprintf("%s %s", cpu.line("scaling_governor"), cpu.line("scaling_max_freq"))
		if kind = strings.TrimSpace(kind); kind != "" && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return strings.Join(kinds, "; ")
}
