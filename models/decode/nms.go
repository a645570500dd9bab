package decode

// gridSide is the cells of the suppressor's grid along each axis; tableSize is the lists that the cells of
// all groups share, a power of two and enough for the cells of one group to have one each: 16 KB.
const (
	gridSide  = 32
	tableSize = 4 * gridSide * gridSide
)

// suppressor is greedy non-maximum suppression: boxes come best first, and one that overlaps a kept
// one of its group by more than the limit is not kept. Every box meets the kept ones only, and of
// those only the ones whose centre is near enough: an overlap above t needs an intersection wider
// than t times each of the two widths, so the other's width is within w*t..w/t and the centres are
// at most w*max(1-t, (1/t-1)/2) apart; likewise in height. Kept boxes therefore hang in lists
// by the cell of their centre and their group.
type suppressor struct {
	iou            float32
	reachFactor    float32 // reach of a box in its own sides
	scaleX, scaleY float32 // cells per pixel
	kept           []keptBox
	last           [tableSize]int32 // the last kept box of each list, -1 for none
}

type keptBox struct {
	box   [4]float32
	area  float32
	group int32
	prev  int32 // the one kept before in the same list, -1 for none
}

// reset forgets all boxes. width and height are the picture's, iou the most overlap of two kept boxes.
func (s *suppressor) reset(width, height int, iou float32) {
	s.iou = min(max(iou, 0), 1)
	s.reachFactor = max(1-s.iou, (1/s.iou-1)/2) * 1.001 // +Inf where any overlap is too much
	s.scaleX, s.scaleY = gridSide/float32(width), gridSide/float32(height)
	s.kept = s.kept[:0]
	for i := range s.last {
		s.last[i] = -1
	}
}

// keep takes a box of a group unless it is suppressed, and says which. Its coordinates are
// finite, and so are their squares.
func (s *suppressor) keep(b [4]float32, group int32) bool {
	k := keptBox{box: b, area: (b[2] - b[0]) * (b[3] - b[1]), group: group}
	cx, cy := (b[0]+b[2])/2, (b[1]+b[3])/2
	rx, ry := s.reach(cx, b[2]-b[0]), s.reach(cy, b[3]-b[1])
	x0, x1 := gridCell((cx-rx)*s.scaleX), gridCell((cx+rx)*s.scaleX)
	y0, y1 := gridCell((cy-ry)*s.scaleY), gridCell((cy+ry)*s.scaleY)
	if (x1-x0+1)*(y1-y0+1) >= len(s.kept) { // fewer boxes than cells
		for i := range s.kept {
			if s.kept[i].suppresses(&k, s.iou) {
				return false
			}
		}
	} else if s.near(&k, x0, x1, y0, y1) {
		return false
	}
	list := &s.last[listOf(gridCell(cx*s.scaleX), gridCell(cy*s.scaleY), group)]
	k.prev, *list = *list, int32(len(s.kept))
	s.kept = append(s.kept, k)
	return true
}

// near says whether a kept box with its centre in the cells x0..x1, y0..y1 suppresses k.
func (s *suppressor) near(k *keptBox, x0, x1, y0, y1 int) bool {
	for y := y0; y <= y1; y++ {
		for x := x0; x <= x1; x++ {
			for i := s.last[listOf(x, y, k.group)]; i >= 0; i = s.kept[i].prev {
				if s.kept[i].suppresses(k, s.iou) {
					return true
				}
			}
		}
	}
	return false
}

// suppresses says whether the two are of one group and their intersection over union is above iou.
// It has few branches on purpose: nobody can predict whether boxes meet.
func (k *keptBox) suppresses(o *keptBox, iou float32) bool {
	if k.group != o.group {
		return false
	}
	w := min(k.box[2], o.box[2]) - max(k.box[0], o.box[0])
	h := min(k.box[3], o.box[3]) - max(k.box[1], o.box[1])
	inter := max(w, 0) * max(h, 0)
	return inter > iou*(k.area+o.area-inter)
}

// reach is how far from c another centre can be and matter, with room for the rounding of centres.
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

// listOf spreads the cells of the groups over the lists. Different groups may share one.
func listOf(x, y int, group int32) int { return (y*gridSide + x + int(group)*613) & (tableSize - 1) }
