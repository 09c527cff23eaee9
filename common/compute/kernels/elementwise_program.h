#ifndef COMMON_COMPUTE_KERNELS_ELEMENTWISE_PROGRAM_H_
#define COMMON_COMPUTE_KERNELS_ELEMENTWISE_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/dtype.h"

namespace muster {

// An op that only kernels know: elementwise ops that follow each other. All of
// them have the shape of the output; the inputs are broadcast to it. A result
// is rounded to the dtype of its step before other steps read it, so that the
// bits are those of the ops one after another.
inline constexpr absl::string_view kFusedElementwiseOp = "FusedElementwise";

// What a node of that op computes, which is in its attributes.
struct ElementwiseProgram {
  // The source of a step that is its `immediate`.
  static constexpr int64_t kImmediate = -1;

  struct Step {
    std::string op;
    // Inputs of the node from 0 on, and behind them the results of earlier
    // steps.
    std::vector<int64_t> sources;
    DType dtype = DType::kInvalid;  // Of the result.
    double immediate = 0;
    double alpha = 0;  // The attributes of the op, if it has them.
    bool approximate = false;
  };

  int64_t input_count = 0;
  std::vector<Step> steps;  // The last one gives the output.

  Attributes ToAttributes() const;
  //   kInvalidArgument  an attribute is missing, or the lists do not fit
  static absl::StatusOr<ElementwiseProgram> FromAttributes(
      const Attributes& attributes);
};

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_ELEMENTWISE_PROGRAM_H_
