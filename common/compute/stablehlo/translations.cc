#include "common/compute/stablehlo/translations.h"

#include <algorithm>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace muster {
namespace {

constexpr absl::string_view kGather =
    "replicas of one program have batches of one size, which this op does not "
    "assume; use AllReduce()";
constexpr absl::string_view kHost =
    "a program on a device cannot print or report errors; leave it out, or "
    "train on another strategy to find the error";
constexpr absl::string_view kText =
    "devices have no strings; compute numbers from them in the dataset";
constexpr absl::string_view kControlFlow =
    "conditionals and loops are not translated; train on another strategy";
constexpr absl::string_view kRecurrence =
    "recurrent layers are not translated; train on another strategy";
constexpr absl::string_view kImage =
    "it is not translated; transform images in the dataset";
constexpr absl::string_view kSecondOrder =
    "only gradients of gradients and of products use it; train on another "
    "strategy";
constexpr absl::string_view kProgram =
    "the program of a layer in Python cannot become a part of another program; "
    "train on another strategy";
constexpr absl::string_view kTruncated =
    "it draws until a number is in range; use RandomNormal() within steps";

// Sorted by name.
constexpr HloTranslation kTranslations[] = {
    {.op = "Abs", .one = UnaryToHlo},
    {.op = "Add", .one = BinaryToHlo},
    {.op = "AddAlongRowsLike", .one = AddAlongRowsLikeToHlo},
    {.op = "AllGather", .refusal = kGather},
    {.op = "AllReduce", .general = AllReduceToHlo},
    {.op = "ApplyGradient", .is_variable = true},
    {.op = "ApplySparseGradient", .is_variable = true},
    {.op = "ArgMax", .one = ArgToHlo},
    {.op = "ArgMin", .one = ArgToHlo},
    {.op = "Assert", .refusal = kHost},
    {.op = "AssignAddVariable", .is_variable = true},
    {.op = "AssignSubVariable", .is_variable = true},
    {.op = "AssignVariable", .is_variable = true},
    {.op = "AveragePool2D", .general = AveragePoolToHlo},
    {.op = "AveragePool2DGrad", .general = AveragePoolGradToHlo},
    {.op = "BatchNormInference", .one = BatchNormInferenceToHlo},
    {.op = "BatchNormTraining", .general = BatchNormTrainingToHlo},
    {.op = "BatchNormTrainingGrad", .general = BatchNormTrainingGradToHlo},
    {.op = "BroadcastLike", .one = BroadcastToHlo},
    {.op = "BroadcastTo", .one = BroadcastToHlo},
    {.op = "Cast", .one = CastToHlo},
    {.op = "Ceil", .one = UnaryToHlo},
    {.op = "Concat", .one = ConcatToHlo},
    {.op = "Cond", .refusal = kControlFlow},
    {.op = "Conv2D", .general = ConvToHlo},
    {.op = "Conv2DBackpropInput", .general = ConvToHlo},
    {.op = "Conv2DBackpropKernel", .general = ConvToHlo},
    {.op = "Cos", .one = UnaryToHlo},
    {.op = "CountAlong", .one = CountAlongToHlo},
    {.op = "CountTokens", .refusal = kText},
    {.op = "CrossHash", .refusal = kText},
    {.op = "CumSum", .one = CumSumToHlo},
    {.op = "DepthwiseConv2D", .general = ConvToHlo},
    {.op = "DepthwiseConv2DBackpropInput", .general = ConvToHlo},
    {.op = "DepthwiseConv2DBackpropKernel", .general = ConvToHlo},
    {.op = "Div", .one = BinaryToHlo},
    {.op = "Elu", .one = EluToHlo},
    {.op = "EluGrad", .one = EluGradToHlo},
    {.op = "Equal", .one = ComparisonToHlo},
    {.op = "Erf", .one = UnaryToHlo},
    {.op = "Exp", .one = UnaryToHlo},
    {.op = "ExpandDims", .one = ReshapeToHlo},
    {.op = "Expm1", .one = UnaryToHlo},
    {.op = "Floor", .one = UnaryToHlo},
    {.op = "FloorDiv", .one = FloorDivToHlo},
    {.op = "FoldInSeed", .one = FoldInSeedToHlo},
    {.op = "Gather", .one = GatherToHlo},
    {.op = "GatherVariable", .is_variable = true},
    {.op = "Gelu", .one = GeluToHlo},
    {.op = "GeluGrad", .one = GeluGradToHlo},
    {.op = "Greater", .one = ComparisonToHlo},
    {.op = "GreaterEqual", .one = ComparisonToHlo},
    {.op = "HashBucket", .refusal = kText},
    {.op = "Identity", .one = ForwardToHlo},
    {.op = "ImageTransform", .refusal = kImage},
    {.op = "ImageTransformGrad", .refusal = kImage},
    {.op = "InTopK", .one = InTopKToHlo},
    {.op = "IsFinite", .one = IsFiniteToHlo},
    {.op = "IsNan", .one = IsNanToHlo},
    {.op = "LayerNorm", .general = LayerNormToHlo},
    {.op = "LayerNormGrad", .general = LayerNormGradToHlo},
    {.op = "LeakyRelu", .one = LeakyReluToHlo},
    {.op = "LeakyReluGrad", .one = LeakyReluGradToHlo},
    {.op = "Less", .one = ComparisonToHlo},
    {.op = "LessEqual", .one = ComparisonToHlo},
    {.op = "Log", .one = UnaryToHlo},
    {.op = "Log1p", .one = UnaryToHlo},
    {.op = "LogSoftmax", .one = SoftmaxToHlo},
    {.op = "LogicalAnd", .one = BinaryToHlo},
    {.op = "LogicalNot", .one = UnaryToHlo},
    {.op = "LogicalOr", .one = BinaryToHlo},
    {.op = "LookupCategory", .refusal = kText},
    {.op = "LookupIndex", .refusal = kText},
    {.op = "MatMul", .one = MatMulToHlo},
    {.op = "Max", .one = ReduceToHlo},
    {.op = "MaxPool2D", .general = MaxPoolToHlo},
    {.op = "MaxPool2DGrad", .general = MaxPoolGradToHlo},
    {.op = "MaxPool2DSelect", .refusal = kSecondOrder},
    {.op = "Maximum", .one = BinaryToHlo},
    {.op = "Mean", .one = MeanToHlo},
    {.op = "Min", .one = ReduceToHlo},
    {.op = "Minimum", .one = BinaryToHlo},
    {.op = "Mod", .one = ModToHlo},
    {.op = "Mul", .one = BinaryToHlo},
    {.op = "Neg", .one = UnaryToHlo},
    {.op = "NotEqual", .one = ComparisonToHlo},
    {.op = "OneHot", .one = OneHotToHlo},
    {.op = "OnesLike", .one = OnesLikeToHlo},
    {.op = "Pad", .one = PadToHlo},
    {.op = "PadLike", .one = PadToHlo},
    {.op = "Pow", .one = BinaryToHlo},
    {.op = "Print", .refusal = kHost},
    {.op = "Prod", .one = ReduceToHlo},
    {.op = "ProdOfOthers", .refusal = kSecondOrder},
    {.op = "Program", .refusal = kProgram},
    {.op = "RandomNormal", .one = RandomNormalToHlo},
    {.op = "RandomUniform", .one = RandomUniformToHlo},
    {.op = "ReadVariable", .is_variable = true},
    {.op = "Reciprocal", .one = ReciprocalToHlo},
    {.op = "Recurrence", .refusal = kRecurrence},
    {.op = "RecurrenceGrad", .refusal = kRecurrence},
    {.op = "Relu", .one = ReluToHlo},
    {.op = "Relu6", .one = ReluToHlo},
    {.op = "Relu6Grad", .one = ReluGradToHlo},
    {.op = "ReluGrad", .one = ReluGradToHlo},
    {.op = "ReplicaCount", .one = ReplicaCountToHlo},
    {.op = "ReplicaId", .one = ReplicaIdToHlo},
    {.op = "ReplicaPart", .refusal = kGather},
    {.op = "Reshape", .one = ReshapeToHlo},
    {.op = "ReshapeLike", .one = ReshapeToHlo},
    {.op = "ResizeImage", .refusal = kImage},
    {.op = "ResizeImageGrad", .refusal = kImage},
    {.op = "Reverse", .one = ReverseToHlo},
    {.op = "Round", .one = UnaryToHlo},
    {.op = "Rsqrt", .one = UnaryToHlo},
    {.op = "Scan", .refusal = kControlFlow},
    {.op = "ScatterAddVariable", .is_variable = true},
    {.op = "ScatterRowsLike", .one = ScatterRowsLikeToHlo},
    {.op = "ScatterSubVariable", .is_variable = true},
    {.op = "ScatterUpdateVariable", .is_variable = true},
    {.op = "Select", .one = SelectToHlo},
    {.op = "SetLossDenominator", .is_variable = true},
    {.op = "Sigmoid", .one = SigmoidToHlo},
    {.op = "SigmoidCrossEntropy", .one = SigmoidCrossEntropyToHlo},
    {.op = "SigmoidGrad", .one = SigmoidGradToHlo},
    {.op = "Sign", .one = SignToHlo},
    {.op = "Sin", .one = UnaryToHlo},
    {.op = "Slice", .one = SliceToHlo},
    {.op = "SliceLike", .one = SliceToHlo},
    {.op = "Softmax", .one = SoftmaxToHlo},
    {.op = "SoftmaxCrossEntropy", .one = SoftmaxCrossEntropyToHlo},
    {.op = "SoftmaxCrossEntropyGrad", .one = SoftmaxCrossEntropyGradToHlo},
    {.op = "SoftmaxGrad", .one = SoftmaxGradToHlo},
    {.op = "Softplus", .one = SoftplusToHlo},
    {.op = "Softsign", .one = SoftsignToHlo},
    {.op = "SparseSoftmaxCrossEntropy", .one = SoftmaxCrossEntropyToHlo},
    {.op = "SparseSoftmaxCrossEntropyGrad",
     .one = SoftmaxCrossEntropyGradToHlo},
    {.op = "Split", .general = SplitToHlo},
    {.op = "SplitLike", .general = SplitToHlo},
    {.op = "Sqrt", .one = UnaryToHlo},
    {.op = "Square", .one = SquareToHlo},
    {.op = "SquaredDifference", .one = SquaredDifferenceToHlo},
    {.op = "Squeeze", .one = ReshapeToHlo},
    {.op = "Stack", .one = StackToHlo},
    {.op = "StepSeed", .one = StepSeedToHlo},
    {.op = "StopGradient", .one = ForwardToHlo},
    {.op = "Sub", .one = BinaryToHlo},
    {.op = "Sum", .one = ReduceToHlo},
    {.op = "SumLike", .one = SumLikeToHlo},
    {.op = "TakeAlongRows", .one = TakeAlongRowsToHlo},
    {.op = "Tanh", .one = UnaryToHlo},
    {.op = "TanhGrad", .one = TanhGradToHlo},
    {.op = "Tokens", .refusal = kText},
    {.op = "TopK", .general = TopKToHlo},
    {.op = "Transpose", .one = TransposeToHlo},
    {.op = "TruncatedNormal", .refusal = kTruncated},
    {.op = "Unstack", .general = SplitToHlo},
    {.op = "While", .refusal = kControlFlow},
    {.op = "ZerosLike", .one = ZerosLikeToHlo},
};

}  // namespace

absl::Span<const HloTranslation> HloTranslations() { return kTranslations; }

const HloTranslation* FindHloTranslation(absl::string_view op) {
  const auto* const found =
      std::lower_bound(std::begin(kTranslations), std::end(kTranslations), op,
                       [](const HloTranslation& entry, absl::string_view name) {
                         return entry.op < name;
                       });
  return found != std::end(kTranslations) && found->op == op ? found : nullptr;
}

}  // namespace muster
