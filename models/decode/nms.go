package decode

// gridSide is the cells of the suppressor's grid along each axis. 32 x 32 heads are 4 KB.
const gridSide = 32

// suppressor is greedy non-maximum suppression: boxes come best first, and one that overlaps a kept
// one of its group by more than the limit is not kept. Every box meets the kept ones
// only, and of those only the ones whose centre is near enough:
// an overlap above t needs an intersection wider than t times each of the two widths, so the
// other's width is within w*t..w/t and the centres are at most
// w*max(1-t, (1/t-1)/2) apart; likewise in height. Kept boxes therefore hang in a grid by their centre.
type suppressor struct {
	iou            float32
	reachFactor    float32 // reach of a box in its own sides
	scaleX, scaleY float32 // cells per pixel
	kept           []keptBox
	first          [gridSide * gridSide]int32 // the last kept box of each cell, -1 for none
}

type keptBox struct {
	box   [4]float32
	area  float32
	group int32
	next  int32 // the one kept before in the same cell, -1 for none
}

// reset forgets all boxes. width and height are the picture's, iou the most overlap of two kept boxes.
func (s *suppressor) reset(width, height int, iou float32) {
	s.iou = min(max(iou, 0), 1)
	s.reachFactor = max(1-s.iou, (1/s.iou-1)/2) * 1.001 // +Inf where any overlap is too much
	s.scaleX, s.scaleY = gridSide/float32(width), gridSide/float32(height)
	s.kept = s.kept[:0]
	for i := range s.first {
		s.first[i] = -1
	}
}

// keep takes a box of a group unless it is suppressed, and says which. Its coordinates are
// finite and their squares, too.
func (s *suppressor) keep(b [4]float32, group int32) bool {
	area := (b[2] - b[0]) * (b[3] - b[1])
	cx, cy := (b[0]+b[2])/2, (b[1]+b[3])/2
	rx, ry := s.reach(cx, b[2]-b[0]), s.reach(cy, b[3]-b[1])
	x0, x1 := gridCell((cx-rx)*s.scaleX), gridCell((cx+rx)*s.scaleX)
	y0, y1 := gridCell((cy-ry)*s.scaleY), gridCell((cy+ry)*s.scaleY)
	if (x1-x0+1)*(y1-y0+1) >= len(s.kept) {
		for i := range s.kept {
			if k := &s.kept[i]; k.group == group && k.overlaps(&b, area, s.iou) {
				return false
			}
		}
	} else {
		for y := y0; y <= y1; y++ {
			for _, i := range s.first[y*gridSide+x0 : y*gridSide+x1+1] {
				for i >= 0 {
					k := &s.kept[i]
					if k.group == group && k.overlaps(&b, area, s.iou) {
						return false
					}
					i = k.next
				}
			}
		}
	}
	at := &s.first[gridCell(cy*s.scaleY)*gridSide+gridCell(cx*s.scaleX)]
	s.kept = append(s.kept, keptBox{box: b, area: area, group: group, next: *at})
	*at = int32(len(s.kept) - 1)
	return true
}

// reach is how far a centre that matters is from c, with room for the rounding of centres.
func (s *suppressor) reach(c, side float32) float32 {
	return side*s.reachFactor + 1e-6*max(c, -c)
}

// gridCell returns the cell of a position in cells; outside counts as the border, which keeps the order.
func gridCell(p float32) int {
	if !(p > 0) {
		return 0
	}
	return int(min(p, gridSide-1))
}

// overlaps says whether intersection over union is above iou.
func (k *keptBox) overlaps(b *[4]float32, area, iou float32) bool {
	w := min(k.box[2], b[2]) - max(k.box[0], b[0])
	if w <= 0 {
		return false
	}
	h := min(k.box[3], b[3]) - max(k.box[1], b[1])
	if h <= 0 {
		return false
	}
	inter := w * h
	return inter > iou*(k.area+area-inter)
}
