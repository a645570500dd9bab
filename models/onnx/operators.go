package onnx

import (
	"math"

	"github.com/eyas-edge/eyas/internal/tensor"
)

func add(a, b float64) float64 { return a + b }
func mul(a, b float64) float64 { return a * b }

const asInput = tensor.Undefined // a result of the first input's type

// operators has the shape function of every operator that is known, by key. It is filled once, because
// If and Loop come back to it.
var operators map[string]opFunc

func init() {
	operators = map[string]opFunc{
		// One input, same shape.
		"Abs": unary(math.Abs), "Neg": unary(func(x float64) float64 { return -x }), "Floor": unary(math.Floor),
		"Ceil": unary(math.Ceil), "Round": unary(math.RoundToEven), "Sqrt": unary(math.Sqrt),
		"Relu": same, "LeakyRelu": same, "PRelu": same, "Sigmoid": same, "HardSigmoid": same, "HardSwish": same,
		"Tanh": same, "Exp": same, "Log": same, "Clip": same, "Elu": same, "Selu": same, "Celu": same, "Gelu": same,
		"Mish": same, "Swish": same, "Softplus": same, "Softsign": same, "ThresholdedRelu": same, "Erf": same,
		"Reciprocal": same, "Sign": same, "Sin": same, "Cos": same, "Tan": same, "Asin": same, "Acos": same,
		"Atan": same, "Sinh": same, "Cosh": same, "Not": same, "BitwiseNot": same, "Softmax": same,
		"LogSoftmax": same, "Hardmax": same, "BatchNormalization": same, "InstanceNormalization": same,
		"GroupNormalization": same, "LpNormalization": same, "MeanVarianceNormalization": same, "LRN": same,
		"CumSum": same, "Trilu": same, "ReverseSequence": same, "Shrink": same, "RMSNormalization": same,
		"ScatterElements": same, "ScatterND": same, "Scatter": same,
		"LayerNormalization": normalized, "Identity": identity, "Dropout": dropout, "IsNaN": toBool, "IsInf": toBool,
		"Cast": cast, "CastLike": cast, "EyeLike": eyeLike,

		// Inputs that broadcast.
		"Add": pairwise(add, asInput), "Mul": pairwise(mul, asInput),
		"Sub": pairwise(func(a, b float64) float64 { return a - b }, asInput),
		"Div": pairwise(func(a, b float64) float64 { return a / b }, asInput),
		"Pow": pairwise(math.Pow, asInput), "Mod": mod,
		"Min": variadic(math.Min), "Max": variadic(math.Max), "Sum": variadic(add), "Mean": variadic(nil),
		"And": pairwise(nil, tensor.Bool), "Or": pairwise(nil, tensor.Bool), "Xor": pairwise(nil, tensor.Bool),
		"BitShift": pairwise(nil, asInput), "BitwiseAnd": pairwise(nil, asInput), "BitwiseOr": pairwise(nil, asInput),
		"Equal":          pairwise(compare(func(a, b float64) bool { return a == b }), tensor.Bool),
		"Greater":        pairwise(compare(func(a, b float64) bool { return a > b }), tensor.Bool),
		"Less":           pairwise(compare(func(a, b float64) bool { return a < b }), tensor.Bool),
		"GreaterOrEqual": pairwise(compare(func(a, b float64) bool { return a >= b }), tensor.Bool),
		"LessOrEqual":    pairwise(compare(func(a, b float64) bool { return a <= b }), tensor.Bool),
		"Where":          where,

		// Convolutions, pools, products.
		"Conv": conv(1, asInput), "ConvInteger": conv(1, tensor.Int32), "QLinearConv": conv(3, asInput),
		"DeformConv": conv(1, asInput), "ConvTranspose": convTranspose,
		"MaxPool": pool, "AveragePool": pool, "LpPool": pool,
		"GlobalAveragePool": globalPool, "GlobalMaxPool": globalPool, "GlobalLpPool": globalPool,
		"MatMul": matMul(1, asInput), "MatMulInteger": matMul(1, tensor.Int32), "QLinearMatMul": matMul(3, asInput),
		"Gemm": gemm, "Einsum": einsum,
		"Resize": resize, "Upsample": resize, "GridSample": gridSample, "RoiAlign": roiAlign,
		"DepthToSpace": depthSpace(false), "SpaceToDepth": depthSpace(true),

		// Quantisation.
		"QuantizeLinear": quantize, "DequantizeLinear": dequantize, "DynamicQuantizeLinear": dynamicQuantize,

		// Shapes and indices.
		"Constant": constantNode, "ConstantOfShape": constantOfShape, "Shape": shapeOf, "Size": size, "Range": rangeOf,
		"Reshape": reshape, "Flatten": flatten, "Squeeze": squeeze, "Unsqueeze": unsqueeze, "Transpose": transpose,
		"Expand": expand, "Tile": tile, "Concat": concat, "Split": split, "Slice": slice, "Pad": pad,
		"Gather": gather, "GatherElements": likeIndices, "GatherND": gatherND, "OneHot": oneHot,

		// Reductions, and what depends on data.
		"ReduceMax": reduce(math.Max), "ReduceMin": reduce(math.Min), "ReduceSum": reduce(add), "ReduceProd": reduce(mul),
		"ReduceMean": reduce(nil), "ReduceL1": reduce(nil), "ReduceL2": reduce(nil), "ReduceSumSquare": reduce(nil),
		"ReduceLogSum": reduce(nil), "ReduceLogSumExp": reduce(nil), "ArgMax": argReduce, "ArgMin": argReduce,
		"TopK": topK, "NonMaxSuppression": nonMaxSuppression, "NonZero": nonZero, "Unique": pickSome, "Compress": pickSome,

		// Inner graphs.
		"If": ifNode, "Loop": loopNode,

		// ONNX Runtime's own, which its quantiser and optimiser write.
		"com.microsoft.FusedConv": conv(1, asInput), "com.microsoft.FusedMatMul": matMul(1, asInput),
		"com.microsoft.MatMulIntegerToFloat": matMul(1, tensor.Float32), "com.microsoft.DynamicQuantizeMatMul": matMul(1, asInput),
		"com.microsoft.QLinearAdd": qlinearBinary, "com.microsoft.QLinearMul": qlinearBinary,
		"com.microsoft.QLinearConcat": qlinearConcat, "com.microsoft.QLinearSigmoid": same,
		"com.microsoft.QLinearLeakyRelu": same, "com.microsoft.QLinearSoftmax": same,
		"com.microsoft.QLinearGlobalAveragePool": qlinearGlobalPool,
		"com.microsoft.QuantizeLinear":           quantize, "com.microsoft.DequantizeLinear": dequantize,
		"com.microsoft.Gelu": same, "com.microsoft.FastGelu": same, "com.microsoft.QuickGelu": same, "com.microsoft.BiasGelu": same,
	}
}
