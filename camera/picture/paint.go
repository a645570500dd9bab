package picture

// paint asks for every row of a stored picture and returns the upright RGB24 pixels,
// tightly packed, with their width and height. Orientations are EXIF's: 2 mirrored, 3 upside down,
// 4 both, 5 to 8 the same with rows and columns exchanged.
func paint(hd header, row rowFunc) (pix []byte, w, h int) {
	pix = make([]byte, hd.w*hd.h*3)
	if hd.orientation > 4 {
		transpose(pix, hd, row)
		return pix, hd.h, hd.w
	}
	flipX := hd.orientation == 2 || hd.orientation == 3
	flipY := hd.orientation == 3 || hd.orientation == 4
	stride := hd.w * 3
	for y := range hd.h {
		at := y
		if flipY {
			at = hd.h - 1 - y
		}
		dst := pix[at*stride : (at+1)*stride]
		row(y, dst)
		if flipX {
			reverse(dst)
		}
	}
	return pix, hd.w, hd.h
}

// reverse mirrors a row of RGB pixels.
func reverse(p []byte) {
	for i, j := 0, len(p)-3; i < j; i, j = i+3, j-3 {
		p[i], p[j] = p[j], p[i]
		p[i+1], p[j+1] = p[j+1], p[i+1]
		p[i+2], p[j+2] = p[j+2], p[i+2]
	}
}

// band is how many rows are gathered before they are written out as columns: 16 pixels
// are 48 bytes, so a cache line is written while it is there and not 16 times.
const band = 16

// transpose paints orientations 5 to 8: stored row y becomes upright column y, counted from
// the right for 6 and 7, and read upwards for 7 and 8.
func transpose(pix []byte, hd header, row rowFunc) {
	right := hd.orientation == 6 || hd.orientation == 7
	up := hd.orientation == 7 || hd.orientation == 8
	stride := hd.h * 3 // of the upright picture
	rows := make([]byte, band*hd.w*3)
	for y0 := 0; y0 < hd.h; y0 += band {
		n := min(band, hd.h-y0)
		for i := range n {
			at := i
			if right { // so that the gathered rows stand in the order of the columns
				at = n - 1 - i
			}
			row(y0+i, rows[at*hd.w*3:(at+1)*hd.w*3])
		}
		column := y0
		if right {
			column = hd.h - y0 - n
		}
		for x := range hd.w {
			y := x
			if up {
				y = hd.w - 1 - x
			}
			dst := pix[y*stride+column*3:][:n*3]
			for i, j := 0, x*3; i < len(dst); i, j = i+3, j+hd.w*3 {
				dst[i], dst[i+1], dst[i+2] = rows[j], rows[j+1], rows[j+2]
			}
		}
	}
}
