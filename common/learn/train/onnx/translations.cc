#include "common/learn/train/onnx/translations.h"

#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/learn/train/onnx/graph_translator.h"

namespace muster {
namespace {

constexpr absl::string_view kTrainingRefusal =
    "it is part of training, of a loss or of a metric; export a model whose "
    "layers do without it";
constexpr absl::string_view kRandom =
    "ONNX's random numbers differ from Muster's; call the layer with "
    "kInference, or leave it out";
constexpr absl::string_view kReplicas =
    "an ONNX model runs in one process, without replicas";
constexpr absl::string_view kText =
    "ONNX has no operator with this hash, table or tokenizer; export the model "
    "behind the layer, and give it numbers";
constexpr absl::string_view kImage =
    "ONNX has no projective transformation; leave the augmentation out";
constexpr absl::string_view kProgram =
    "ONNX cannot contain the program of a layer in Python; export the model "
    "from Keras";
constexpr absl::string_view kVariable =
    "it is a constant by then; report this as a bug";

using Translation = OnnxTranslation;

// Sorted by name.
constexpr Translation kTranslations[] = {
    {.op = "Abs", .onnx_op = "Abs"},
    {.op = "Add", .onnx_op = "Add"},
    {.op = "AddAlongRowsLike", .refusal = kTrainingRefusal},
    {.op = "AllGather", .refusal = kReplicas},
    {.op = "AllReduce", .refusal = kReplicas},
    {.op = "ApplyGradient", .refusal = kTrainingRefusal},
    {.op = "ApplySparseGradient", .refusal = kTrainingRefusal},
    {.op = "ArgMax", .general = ArgToOnnx},
    {.op = "ArgMin", .general = ArgToOnnx},
    {.op = "Assert", .general = ForwardToOnnx},
    {.op = "AssignAddVariable", .refusal = kTrainingRefusal},
    {.op = "AssignSubVariable", .refusal = kTrainingRefusal},
    {.op = "AssignVariable", .refusal = kTrainingRefusal},
    {.op = "AveragePool2D", .general = AveragePoolToOnnx},
    {.op = "AveragePool2DGrad", .refusal = kTrainingRefusal},
    {.op = "BatchNormInference", .general = BatchNormToOnnx},
    {.op = "BatchNormTraining", .refusal = kTrainingRefusal},
    {.op = "BatchNormTrainingGrad", .refusal = kTrainingRefusal},
    {.op = "BroadcastLike", .general = BroadcastLikeToOnnx},
    {.op = "BroadcastTo", .general = BroadcastToToOnnx},
    {.op = "Cast", .general = CastToOnnx},
    {.op = "Ceil", .onnx_op = "Ceil"},
    {.op = "Concat", .general = ConcatToOnnx},
    {.op = "Cond", .general = CondToOnnx},
    {.op = "Constant", .general = ForwardToOnnx},
    {.op = "Conv2D", .general = Conv2DToOnnx},
    {.op = "Conv2DBackpropInput", .general = ConvTransposeToOnnx},
    {.op = "Conv2DBackpropKernel", .refusal = kTrainingRefusal},
    {.op = "Cos", .onnx_op = "Cos"},
    {.op = "CountAlong", .general = CountAlongToOnnx},
    {.op = "CountTokens", .refusal = kText},
    {.op = "CrossHash", .refusal = kText},
    {.op = "CumSum", .general = CumSumToOnnx},
    {.op = "DepthwiseConv2D", .general = DepthwiseConv2DToOnnx},
    {.op = "DepthwiseConv2DBackpropInput", .refusal = kTrainingRefusal},
    {.op = "DepthwiseConv2DBackpropKernel", .refusal = kTrainingRefusal},
    {.op = "Div", .onnx_op = "Div"},
    {.op = "Elu", .elementwise = EluToOnnx},
    {.op = "EluGrad", .refusal = kTrainingRefusal},
    {.op = "Equal", .onnx_op = "Equal"},
    {.op = "Erf", .onnx_op = "Erf"},
    {.op = "Exp", .onnx_op = "Exp"},
    {.op = "ExpandDims", .general = ExpandDimsToOnnx},
    {.op = "Expm1", .elementwise = Expm1ToOnnx},
    {.op = "Floor", .onnx_op = "Floor"},
    {.op = "FloorDiv", .elementwise = FloorDivToOnnx},
    {.op = "FoldInSeed", .refusal = kRandom},
    {.op = "Gather", .general = GatherToOnnx},
    {.op = "GatherVariable", .refusal = kVariable},
    {.op = "Gelu", .elementwise = GeluToOnnx},
    {.op = "GeluGrad", .refusal = kTrainingRefusal},
    {.op = "Greater", .onnx_op = "Greater"},
    {.op = "GreaterEqual", .onnx_op = "GreaterOrEqual"},
    {.op = "HashBucket", .refusal = kText},
    {.op = "Identity", .general = ForwardToOnnx},
    {.op = "ImageTransform", .refusal = kImage},
    {.op = "ImageTransformGrad", .refusal = kTrainingRefusal},
    {.op = "InTopK", .refusal = kTrainingRefusal},
    {.op = "IsFinite", .elementwise = IsFiniteToOnnx},
    {.op = "IsNan", .onnx_op = "IsNaN"},
    {.op = "LayerNorm", .general = LayerNormToOnnx},
    {.op = "LayerNormGrad", .refusal = kTrainingRefusal},
    {.op = "LeakyRelu", .elementwise = LeakyReluToOnnx},
    {.op = "LeakyReluGrad", .refusal = kTrainingRefusal},
    {.op = "Less", .onnx_op = "Less"},
    {.op = "LessEqual", .onnx_op = "LessOrEqual"},
    {.op = "Log", .onnx_op = "Log"},
    {.op = "Log1p", .elementwise = Log1pToOnnx},
    {.op = "LogSoftmax", .general = SoftmaxToOnnx},
    {.op = "LogicalAnd", .onnx_op = "And"},
    {.op = "LogicalNot", .onnx_op = "Not"},
    {.op = "LogicalOr", .onnx_op = "Or"},
    {.op = "LookupCategory", .refusal = kText},
    {.op = "LookupIndex", .refusal = kText},
    {.op = "MatMul", .general = MatMulToOnnx},
    {.op = "Max", .general = ReduceToOnnx},
    {.op = "MaxPool2D", .general = MaxPoolToOnnx},
    {.op = "MaxPool2DGrad", .refusal = kTrainingRefusal},
    {.op = "MaxPool2DSelect", .refusal = kTrainingRefusal},
    {.op = "Maximum", .onnx_op = "Max"},
    {.op = "Mean", .general = ReduceToOnnx},
    {.op = "Min", .general = ReduceToOnnx},
    {.op = "Minimum", .onnx_op = "Min"},
    {.op = "Mod", .elementwise = ModToOnnx},
    {.op = "Mul", .onnx_op = "Mul"},
    {.op = "Neg", .onnx_op = "Neg"},
    {.op = "NotEqual", .elementwise = NotEqualToOnnx},
    {.op = "OneHot", .general = OneHotToOnnx},
    {.op = "OnesLike", .general = FilledToOnnx},
    {.op = "Pad", .general = PadToOnnx},
    {.op = "PadLike", .refusal = kTrainingRefusal},
    {.op = "Parameter", .general = ForwardToOnnx},
    {.op = "Pow", .onnx_op = "Pow"},
    {.op = "Print", .general = ForwardToOnnx},
    {.op = "Prod", .general = ReduceToOnnx},
    {.op = "ProdOfOthers", .refusal = kTrainingRefusal},
    {.op = "Program", .refusal = kProgram},
    {.op = "RandomNormal", .refusal = kRandom},
    {.op = "RandomUniform", .refusal = kRandom},
    {.op = "ReadVariable", .refusal = kVariable},
    {.op = "Reciprocal", .onnx_op = "Reciprocal"},
    {.op = "Recurrence", .general = RecurrenceToOnnx},
    {.op = "RecurrenceGrad", .refusal = kTrainingRefusal},
    {.op = "Relu", .onnx_op = "Relu"},
    {.op = "Relu6", .elementwise = Relu6ToOnnx},
    {.op = "Relu6Grad", .refusal = kTrainingRefusal},
    {.op = "ReluGrad", .refusal = kTrainingRefusal},
    {.op = "ReplicaCount", .refusal = kReplicas},
    {.op = "ReplicaId", .refusal = kReplicas},
    {.op = "ReplicaPart", .refusal = kReplicas},
    {.op = "Reshape", .general = ReshapeToOnnx},
    {.op = "ReshapeLike", .general = ReshapeLikeToOnnx},
    {.op = "ResizeImage", .general = ResizeImageToOnnx},
    {.op = "ResizeImageGrad", .refusal = kTrainingRefusal},
    {.op = "Reverse", .general = ReverseToOnnx},
    {.op = "Round", .onnx_op = "Round"},
    {.op = "Rsqrt", .elementwise = RsqrtToOnnx},
    {.op = "Scan", .general = ScanToOnnx},
    {.op = "ScatterAddVariable", .refusal = kTrainingRefusal},
    {.op = "ScatterRowsLike", .refusal = kTrainingRefusal},
    {.op = "ScatterSubVariable", .refusal = kTrainingRefusal},
    {.op = "ScatterUpdateVariable", .refusal = kTrainingRefusal},
    {.op = "Select", .onnx_op = "Where"},
    {.op = "SetLossDenominator", .refusal = kTrainingRefusal},
    {.op = "Sigmoid", .onnx_op = "Sigmoid"},
    {.op = "SigmoidCrossEntropy", .refusal = kTrainingRefusal},
    {.op = "SigmoidGrad", .refusal = kTrainingRefusal},
    {.op = "Sign", .onnx_op = "Sign"},
    {.op = "Sin", .onnx_op = "Sin"},
    {.op = "Slice", .general = SliceToOnnx},
    {.op = "SliceLike", .general = SliceLikeToOnnx},
    {.op = "Softmax", .general = SoftmaxToOnnx},
    {.op = "SoftmaxCrossEntropy", .refusal = kTrainingRefusal},
    {.op = "SoftmaxCrossEntropyGrad", .refusal = kTrainingRefusal},
    {.op = "SoftmaxGrad", .refusal = kTrainingRefusal},
    {.op = "Softplus", .onnx_op = "Softplus"},
    {.op = "Softsign", .onnx_op = "Softsign"},
    {.op = "SparseSoftmaxCrossEntropy", .refusal = kTrainingRefusal},
    {.op = "SparseSoftmaxCrossEntropyGrad", .refusal = kTrainingRefusal},
    {.op = "Split", .general = SplitToOnnx},
    {.op = "SplitLike", .refusal = kTrainingRefusal},
    {.op = "Sqrt", .onnx_op = "Sqrt"},
    {.op = "Square", .elementwise = SquareToOnnx},
    {.op = "SquaredDifference", .elementwise = SquaredDifferenceToOnnx},
    {.op = "Squeeze", .general = SqueezeToOnnx},
    {.op = "Stack", .general = StackToOnnx},
    {.op = "StepSeed", .refusal = kRandom},
    {.op = "StopGradient", .general = ForwardToOnnx},
    {.op = "Sub", .onnx_op = "Sub"},
    {.op = "Sum", .general = ReduceToOnnx},
    {.op = "SumLike", .refusal = kTrainingRefusal},
    {.op = "TakeAlongRows", .general = TakeAlongRowsToOnnx},
    {.op = "Tanh", .onnx_op = "Tanh"},
    {.op = "TanhGrad", .refusal = kTrainingRefusal},
    {.op = "Tokens", .refusal = kText},
    {.op = "TopK", .general = TopKToOnnx},
    {.op = "Transpose", .general = TransposeToOnnx},
    {.op = "TruncatedNormal", .refusal = kRandom},
    {.op = "Unstack", .general = UnstackToOnnx},
    {.op = "While", .general = WhileToOnnx},
    {.op = "ZerosLike", .general = FilledToOnnx},
};

std::string EmitOnnxOp(OnnxNode& node, absl::Span<const std::string> operands) {
  return node.Emit(FindOnnxTranslation(node.op())->onnx_op, operands);
}

}  // namespace

absl::Span<const OnnxTranslation> OnnxTranslations() { return kTranslations; }

const OnnxTranslation* FindOnnxTranslation(absl::string_view op) {
  const auto found =
      std::lower_bound(std::begin(kTranslations), std::end(kTranslations), op,
                       [](const Translation& entry, absl::string_view name) {
                         return entry.op < name;
                       });
  return found != std::end(kTranslations) && found->op == op ? found : nullptr;
}

absl::Status TranslateToOnnx(OnnxNode& node) {
  const OnnxTranslation* const translation = FindOnnxTranslation(node.op());
  if (translation == nullptr) {
    return node.Refuse("there is no translation of this op");
  }
  if (!translation->refusal.empty()) return node.Refuse(translation->refusal);
  if (translation->general != nullptr) return translation->general(node);
  TranslateElementwise(node, translation->elementwise != nullptr
                                 ? translation->elementwise
                                 : EmitOnnxOp);
  return absl::OkStatus();
}

}  // namespace muster
