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

// An op that exists only in kernels: consecutive elementwise ops. All of them
// have the shape of the output; the inputs are broadcast to it. A result is
// rounded to the dtype of its step before other steps read it, so that the bits
// equal those of the separate ops.
inline constexpr absl::string_view kFusedElementwiseOp = "FusedElementwise";

// The computation of a node of that op, in the node's attributes.
struct ElementwiseProgram {
  // Denotes the step's `immediate` as a source.
  static constexpr int64_t kImmediate = -1;

  struct Step {
    std::string op;
    // Indices into the inputs of the node, followed by the results of earlier
    // steps.
    std::vector<int64_t> sources;
    DType dtype = DType::kInvalid;  // The dtype of the result.
    double immediate = 0;
    double alpha = 0;  // Attributes of ops that have them.
    bool approximate = false;
  };

  int64_t input_count = 0;
  std::vector<Step> steps;  // The last one computes the output.

  Attributes ToAttributes() const;
  //   kInvalidArgument  an attribute is missing, or the lists are inconsistent
  static absl::StatusOr<ElementwiseProgram> FromAttributes(
      const Attributes& attributes);
};

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_ELEMENTWISE_PROGRAM_H_
