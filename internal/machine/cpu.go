package machine

import (
	"fmt"
	goruntime "runtime"
	"strings"

	"golang.org/x/sys/cpu"
	"golang.org/x/sys/unix"
)

// CPU says how many processors the process may use, and of which kind.
type CPU struct {
	Allowed  int      // whole CPUs, at least 1: the smallest of the limits below, rounded up
	Affinity int      // CPUs that the scheduler may use for this process, 0 if unknown
	Quota    float64  // CPUs that the control groups grant, 0 if without limit
	Why      string   // which limit decides: "affinity" or "control group"
	Model    string   // the processor's name, empty if unknown
	Features []string // instruction sets that matter to inference, for example "avx2"
}

// CPUs returns the number of CPUs that this process may use, at least 1. Unlike
// runtime.NumCPU it knows the control groups' quota.
func CPUs() int { return ReadCPU("/").Allowed }

// ReadCPU reads the processor's facts below root.
func ReadCPU(root string) CPU {
	fs := files{root}
	c := CPU{Affinity: affinity(), Quota: quota(fs), Model: cpuModel(fs), Features: cpuFeatures()}
	c.Allowed, c.Why = allowed(c.Affinity, c.Quota)
	return c
}

func allowed(affinity int, quota float64) (int, string) {
	n, why := affinity, "affinity"
	if n < 1 {
		n = goruntime.NumCPU()
	}
	// Half a CPU still needs a thread to use it, so a quota rounds up.
	if q := min(quota, 1<<20); q > 0 && q <= float64(n-1) {
		n, why = int(q), "control group"
		if float64(n) < q {
			n++
		}
	}
	return max(n, 1), why
}

func affinity() int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return 0
	}
	return set.Count()
}

// quota returns the smallest quota of the process's control groups in CPUs.
func quota(fs files) float64 {
	least := 0.0
	groupFiles(fs, "cpu", func(dir string, v2 bool) {
		var q float64
		if v2 {
			q = parseCPUMax(fs.text(dir + "/cpu.max"))
		} else {
			q = parseCPUMax(fs.line(dir+"/cpu.cfs_quota_us") + " " + fs.line(dir+"/cpu.cfs_period_us"))
		}
		if q > 0 && (least == 0 || q < least) {
			least = q
		}
	})
	return least
}

// parseCPUMax parses "QUOTA PERIOD", both in microseconds, into CPUs; 0 for "max",
// -1 and anything else that is no limit.
func parseCPUMax(text string) float64 {
	f := strings.Fields(text)
	if len(f) != 2 {
		return 0
	}
	q, ok1 := number(f[0])
	p, ok2 := number(f[1])
	if !ok1 || !ok2 || p == 0 {
		return 0
	}
	return float64(q) / float64(p)
}

// cpuModel returns the processor's name as the kernel knows it.
func cpuModel(fs files) string {
	info := fs.text("proc/cpuinfo")
	for _, key := range []string{"model name", "Model", "Hardware"} {
		if v := field(info, key); v != "" {
			return v
		}
	}
	if part := field(info, "CPU part"); part != "" {
		return fmt.Sprintf("ARM implementer %s part %s", field(info, "CPU implementer"), part)
	}
	return ""
}

// cpuFeatures lists the instruction sets that ONNX Runtime's kernels use.
func cpuFeatures() []string {
	x, a := cpu.X86, cpu.ARM64
	var list []string
	for _, f := range []struct {
		has  bool
		name string
	}{
		{x.HasSSE41, "sse4.1"}, {x.HasAVX, "avx"}, {x.HasAVX2, "avx2"}, {x.HasFMA, "fma"},
		{x.HasAVX512F, "avx512f"}, {x.HasAVX512VNNI, "avx512vnni"}, {x.HasAVXVNNI, "avxvnni"},
		{x.HasAVX512BF16, "avx512bf16"}, {x.HasAMXInt8, "amx-int8"},
		{a.HasASIMD, "neon"}, {a.HasASIMDDP, "dotprod"}, {a.HasFPHP && a.HasASIMDHP, "fp16"}, {a.HasSVE, "sve"}, {a.HasSVE2, "sve2"},
		{a.HasI8MM, "i8mm"},
	} {
		if f.has {
			list = append(list, f.name)
		}
	}
	return list
}
