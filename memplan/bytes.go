package memplan

import "fmt"

var byteUnits = []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}

// FormatBytes writes a number of bytes for people: "512 B", "5.4 MiB". It is rounded to one decimal.
func FormatBytes(n int64) string {
	if n > -1024 && n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := float64(n)/1024, 0
	// From here on one decimal would round up to 1024.0 of the unit.
	for ; (v >= 1023.95 || v <= -1023.95) && unit < len(byteUnits)-1; unit++ {
		v /= 1024
	}
	return fmt.Sprintf("%.1f %s", v, byteUnits[unit])
}

// exactBytes writes a number of bytes for people and to the byte.
func exactBytes(n int64) string {
	if n > -1024 && n < 1024 {
		return FormatBytes(n)
	}
	return fmt.Sprintf("%s (%d bytes)", FormatBytes(n), n)
}
