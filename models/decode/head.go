// Package decode turns a model's output tensors into detections: boxes in pixels of
// the displayed picture, scores in 0..1, classes, after non-maximum suppression. It never
// indexes outside of a tensor, whatever the tensor holds, and allocates nothing per frame
// once its buffers have grown to the model's candidates.
package decode

// Kind is the shape of a detector's answer. Several families share one.
type Kind uint8

// The kinds of heads. N is the number of candidates, C of classes; all boxes are in
// pixels of the input unless said otherwise.
const (
	None       Kind = iota
	Objectness      // YOLOv5, v7 decoded: [B,N,5+C(+M)] cx,cy,w,h,objectness,scores(,mask coefficients)
	ClassOnly       // YOLOv8, v9, 11, 12: [B,4+C(+M),N] cx,cy,w,h,scores(,mask coefficients)
	EndToEnd        // YOLOv10, 26: [B,N,6(+M)] x1,y1,x2,y2,score,class(,mask coefficients)
	YOLOX           // [B,N,5+C] on the grids of Strides, undecoded: (x+gx)*s, exp(w)*s, sigmoid applied
	Grid            // YOLOv2: [B,A*(5+C),H,W] with A anchors in cells, all raw
	RawYOLOv5       // three or four [B,A,H,W,5+C] (or [B,A*(5+C),H,W]), raw; anchors in pixels
	GFL             // NanoDet, PicoDet: per stride class scores and 4 x (RegMax+1) distance bins; or both for all strides in one [B,N,C+4*(RegMax+1)] (NanoDet-Plus)
	FastestDet      // objectness, 4 box values and C scores on one grid
	DETR            // labels, boxes (absolute x1,y1,x2,y2), scores; no NMS
	Rows            // in-graph NMS: [num,6] x1,y1,x2,y2,score,class or [num,7] batch,x1,y1,x2,y2,class,score
	FourOutput      // num_dets [B,1], boxes [B,K,4] x1,y1,x2,y2, scores [B,K], classes [B,K]
)

// Head says how to read a model's outputs. Roles index the model's outputs.
type Head struct {
	Kind    Kind
	Classes int // 0 for one nameless class (face); NMS-free heads: 0 for labels that are not known, all pass

	// Transposed tells [B,N,4+C] from [B,4+C,N] (ClassOnly), channels-last from
	// channels-first grids (Grid, RawYOLOv5, FastestDet).
	Transposed bool
	// NormBoxes: box values are 0..1 of the input instead of pixels.
	NormBoxes bool
	// Sigmoid: scores are logits and want a sigmoid.
	Sigmoid bool
	// Masks is the number M of mask coefficients that follow the class scores.
	Masks int

	Output  int   // the main output (Objectness, ClassOnly, EndToEnd, YOLOX, Grid, FastestDet, Rows)
	Levels  []int // outputs per stride in the order of Strides (RawYOLOv5)
	Scores  []int // class score outputs per stride (GFL), all the same one as Boxes if there is one; [scores] (DETR, FourOutput)
	Boxes   []int // distance outputs per stride (GFL); [boxes] (DETR, FourOutput)
	Labels  int   // labels or classes output (DETR, FourOutput)
	Num     int   // num_dets output (FourOutput)
	Strides []int // YOLOX, RawYOLOv5, GFL

	// Anchors are w,h pairs: in cells for Grid, in pixels per level for RawYOLOv5.
	Anchors [][]float32
	// RegMax is the highest bin of a distance distribution (GFL), 7 for eight bins.
	RegMax int
	// CentreOffset is where a cell's centre lies: (x + CentreOffset) * stride; PicoDet 0.5.
	// NanoDet's is x*s + (s-1)/2, said by CentreNanoDet.
	CentreOffset  float32
	CentreNanoDet bool
}

// NMSFree says whether the model's answer is final: no suppression of ours follows.
func (h Head) NMSFree() bool {
	switch h.Kind {
	case EndToEnd, DETR, Rows, FourOutput:
		return true
	}
	return false
}

// Options are the thresholds of one model.
type Options struct {
	Conf       float32 // least score
	IoU        float32 // most overlap of two boxes kept; from 1 on nothing is suppressed
	MaxDet     int     // most detections of a picture; 0 for no limit but MaxCandidates
	Classes    []int   // only these; none for all
	Agnostic   bool    // suppress across classes
	MultiLabel bool    // several classes per candidate; else the best one
}

// MaxCandidates is the most candidates that go into suppression: the best by score.
const MaxCandidates = 30000

// Detection is one object. Box is x1,y1,x2,y2 in pixels of the displayed picture, finite,
// clipped to it, x1 < x2 and y1 < y2.
type Detection struct {
	ClassID int
	Score   float32
	Box     [4]float32
}
