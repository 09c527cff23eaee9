#ifndef COMMON_LEARN_TRAIN_ONNX_TRANSLATIONS_H_
#define COMMON_LEARN_TRAIN_ONNX_TRANSLATIONS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/learn/train/onnx/graph_translator.h"

namespace muster {

// How ONNX computes an op of Muster. One of the functions is set, or `onnx_op`,
// or `refusal`.
struct OnnxTranslation {
  // Adds nodes that compute the only output from the operands, which are
  // broadcast, element by element. Returns its name.
  using Elementwise = std::string (*)(OnnxNode& node,
                                      absl::Span<const std::string> operands);
  // Adds nodes, and sets the outputs.
  //   kUnimplemented  OnnxNode::Refuse()
  using General = absl::Status (*)(OnnxNode& node);

  absl::string_view op;
  // The op of ONNX that computes the same elements.
  absl::string_view onnx_op = "";
  Elementwise elementwise = nullptr;
  General general = nullptr;
  // Why there is no translation, and what can be done.
  absl::string_view refusal = "";
};

// The table of all ops that graphs may contain, sorted by name.
absl::Span<const OnnxTranslation> OnnxTranslations();

// Returns null if there is no such op.
const OnnxTranslation* FindOnnxTranslation(absl::string_view op);

// Adds nodes that compute `node`, and sets its outputs.
//   kUnimplemented  there is no translation; names op, node and layer
absl::Status TranslateToOnnx(OnnxNode& node);

// As TranslateToOnnx() for `elementwise`.
void TranslateElementwise(OnnxNode& node,
                          OnnxTranslation::Elementwise elementwise);

// The translations, by file.

// elementwise.cc
std::string FloorDivToOnnx(OnnxNode& node, absl::Span<const std::string> x);
std::string ModToOnnx(OnnxNode& node, absl::Span<const std::string> x);
std::string SquaredDifferenceToOnnx(OnnxNode& node,
                                    absl::Span<const std::string> x);
std::string Relu6ToOnnx(OnnxNode& node, absl::Span<const std::string> x);
std::string LeakyReluToOnnx(OnnxNode& node, absl::Span<const std::string> x);
std::string EluToOnnx(OnnxNode& node, absl::Span<const std::string> x);
std::string GeluToOnnx(OnnxNode& node, absl::Span<const std::string> x);
std::string SquareToOnnx(OnnxNode& node, absl::Span<const std::string> x);
std::string RsqrtToOnnx(OnnxNode& node, absl::Span<const std::string> x);
std::string Expm1ToOnnx(OnnxNode& node, absl::Span<const std::string> x);
std::string Log1pToOnnx(OnnxNode& node, absl::Span<const std::string> x);
std::string IsFiniteToOnnx(OnnxNode& node, absl::Span<const std::string> x);
std::string NotEqualToOnnx(OnnxNode& node, absl::Span<const std::string> x);
absl::Status CastToOnnx(OnnxNode& node);
absl::Status ForwardToOnnx(OnnxNode& node);
absl::Status FilledToOnnx(OnnxNode& node);  // ZerosLike and OnesLike.

// axes.cc: reductions and others along axes.
absl::Status SoftmaxToOnnx(OnnxNode& node);  // LogSoftmax, too.
absl::Status LayerNormToOnnx(OnnxNode& node);
absl::Status ReduceToOnnx(OnnxNode& node);
absl::Status ArgToOnnx(OnnxNode& node);
absl::Status CumSumToOnnx(OnnxNode& node);
absl::Status CountAlongToOnnx(OnnxNode& node);
absl::Status ConcatToOnnx(OnnxNode& node);
absl::Status StackToOnnx(OnnxNode& node);
absl::Status UnstackToOnnx(OnnxNode& node);
absl::Status SplitToOnnx(OnnxNode& node);
absl::Status SliceToOnnx(OnnxNode& node);
absl::Status SliceLikeToOnnx(OnnxNode& node);
absl::Status PadToOnnx(OnnxNode& node);
absl::Status ReverseToOnnx(OnnxNode& node);
absl::Status TopKToOnnx(OnnxNode& node);
absl::Status TakeAlongRowsToOnnx(OnnxNode& node);

// shapes.cc
absl::Status MatMulToOnnx(OnnxNode& node);
absl::Status GatherToOnnx(OnnxNode& node);
absl::Status OneHotToOnnx(OnnxNode& node);
absl::Status ReshapeToOnnx(OnnxNode& node);
absl::Status ReshapeLikeToOnnx(OnnxNode& node);
absl::Status ExpandDimsToOnnx(OnnxNode& node);
absl::Status SqueezeToOnnx(OnnxNode& node);
absl::Status TransposeToOnnx(OnnxNode& node);
absl::Status BroadcastToToOnnx(OnnxNode& node);
absl::Status BroadcastLikeToOnnx(OnnxNode& node);

// images.cc
absl::Status Conv2DToOnnx(OnnxNode& node);
absl::Status DepthwiseConv2DToOnnx(OnnxNode& node);
absl::Status ConvTransposeToOnnx(OnnxNode& node);  // Conv2DBackpropInput.
absl::Status MaxPoolToOnnx(OnnxNode& node);
absl::Status AveragePoolToOnnx(OnnxNode& node);
absl::Status BatchNormToOnnx(OnnxNode& node);
absl::Status ResizeImageToOnnx(OnnxNode& node);

// recurrence.cc
absl::Status RecurrenceToOnnx(OnnxNode& node);

// control_flow.cc
absl::Status CondToOnnx(OnnxNode& node);
absl::Status ScanToOnnx(OnnxNode& node);
absl::Status WhileToOnnx(OnnxNode& node);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_ONNX_TRANSLATIONS_H_
