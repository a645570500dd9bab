package machine

import "testing"

func TestClocks(t *testing.T) {
	const cpu = "sys/devices/system/cpu/"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"unknown", nil, ""},
		{"all alike", map[string]string{
			cpu + "cpu0/cpufreq/scaling_governor": "schedutil\n", cpu + "cpu0/cpufreq/scaling_max_freq": "1510400\n",
			cpu + "cpu1/cpufreq/scaling_governor": "schedutil\n", cpu + "cpu1/cpufreq/scaling_max_freq": "1510400\n",
		}, "schedutil 1510400"},
		{"two kinds", map[string]string{
			cpu + "cpu0/cpufreq/scaling_governor": "performance\n", cpu + "cpu0/cpufreq/scaling_max_freq": "1800000\n",
			cpu + "cpu1/cpufreq/scaling_governor": "performance\n", cpu + "cpu1/cpufreq/scaling_max_freq": "2400000\n",
		}, "performance 1800000; performance 2400000"},
		{"a file is missing", map[string]string{cpu + "cpu0/cpufreq/scaling_max_freq": "5\n", cpu + "cpufreq/boost": "1\n"}, "5"},
		{"a file is empty", map[string]string{cpu + "cpu0/cpufreq/scaling_governor": "\n"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Clocks(tree(t, c.files)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
