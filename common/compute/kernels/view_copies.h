#ifndef COMMON_COMPUTE_KERNELS_VIEW_COPIES_H_
#define COMMON_COMPUTE_KERNELS_VIEW_COPIES_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/kernels/strided_index.h"

// Ops that copy a view: each output element is a copy of an input element at a
// position that the types determine.
namespace muster::internal {

// Copies element from(i) of an input to element to(i) of an output, for all i.
struct ViewCopy {
  int input = 0;
  int output = 0;
  StridedIndex from;
  StridedIndex to;
};

// An op, and the copies that write each of its output elements once.
struct ViewOp {
  absl::string_view name;
  std::vector<ViewCopy> (*copies)(const KernelSpec& spec);
};
absl::Span<const ViewOp> ViewOps();

// Requires that the op is one of ViewOps().
std::vector<ViewCopy> ViewCopiesOf(const KernelSpec& spec);

// Returns the position of the input of Pad or PadLike in the output.
std::vector<int64_t> PadBegin(const KernelSpec& spec);

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_VIEW_COPIES_H_
