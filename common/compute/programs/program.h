#ifndef COMMON_COMPUTE_PROGRAMS_PROGRAM_H_
#define COMMON_COMPUTE_PROGRAMS_PROGRAM_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// The types of the inputs and outputs of a program.
struct ProgramTypes {
  std::vector<TensorType> inputs;
  std::vector<TensorType> outputs;

  bool operator==(const ProgramTypes&) const = default;
};

// A function in StableHLO: what JAX exports for a layer, a loss or a metric of
// Python code. A compiler needs the extents of all arrays, so a program has one
// variant for each batch size that it was exported for.
//
// The encoded form is JSON, which docs/formats.md describes.
struct Program {
  // The largest encoded program.
  static constexpr size_t kBytesMax = size_t{256} << 20;

  struct Variant {
    ProgramTypes types;  // With fully known shapes.
    // Portable artifacts, or text of MLIR. The function "main" of a module has
    // the inputs and outputs of `types`.
    std::string stablehlo;
    // The gradient of `stablehlo`, with the types of GradientTypes(). Empty if
    // the program has no gradient, or that of a loss.
    std::string gradient_stablehlo;
  };

  // Which derivatives the gradient computes. Its inputs are those of the
  // program, followed by the gradients of the first `output_count` outputs. Its
  // outputs are the gradients of the inputs with these indices.
  //
  // With `is_of_loss`, there is no separate module: the last outputs of the
  // program are the gradients, one for each of `inputs`, of a loss. The loss is
  // the first column of output 0, [batch, ...], and equal in all rows. So a
  // training step computes the forward pass once.
  struct Gradient {
    std::vector<int> inputs;
    int output_count = 0;
    bool is_of_loss = false;
  };

  std::string name;  // For messages: the name of the layer, loss or metric.
  // Extents that differ between variants are unknown.
  ProgramTypes types;
  std::optional<Gradient> gradient;
  std::vector<Variant> variants;

  // The types of the gradient of a program or of a variant. Needs `gradient`.
  ProgramTypes GradientTypes(const ProgramTypes& of) const;

  // Returns the index of the variant for inputs of these fully known types, or
  // of its gradient.
  //   kInvalidArgument  the program was not exported for these inputs; the
  //                     message lists those for which it was
  absl::StatusOr<int> FindVariant(absl::Span<const TensorType> inputs,
                                  bool is_gradient) const;

  // Returns the types of the outputs for inputs of these types, which may have
  // unknown extents. Without a variant for the inputs, the extents that vary
  // must be equal, and are those of the outputs.
  //   kInvalidArgument  an input has another type; or there is no separate
  //                     gradient
  absl::StatusOr<std::vector<TensorType>> InferOutputs(
      absl::Span<const TensorType> inputs, bool is_gradient) const;

  std::string Encode() const;
  //   kInvalidArgument  not an encoded program, or its parts contradict each
  //                     other; names the field
  static absl::StatusOr<Program> Decode(absl::string_view encoded);
};

// True if `inputs` have no element along an extent that varies between the
// variants of a program: a replica without examples. The outputs of the program
// are then zeros.
bool HasNoExamples(absl::Span<const TensorType> program_inputs,
                   absl::Span<const TensorType> inputs);

// Parses TensorType::ToString(): "float32[?,16]".
//   kInvalidArgument  no dtype, or not a valid shape
absl::StatusOr<TensorType> ParseTensorType(absl::string_view text);

}  // namespace muster

#endif  // COMMON_COMPUTE_PROGRAMS_PROGRAM_H_
