#ifndef COMMON_COMPUTE_KERNELS_VIEW_COPIES_H_
#define COMMON_COMPUTE_KERNELS_VIEW_COPIES_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/kernels/strided_index.h"

// The ops whose output elements are copies of input elements at positions that
// the types determine: views that are copied.
namespace muster::internal {

// Copies element from(i) of an input to element to(i) of an output, for all i.
struct ViewCopy {
  int input = 0;
  int output = 0;
  StridedIndex from;
  StridedIndex to;
};

// BroadcastTo, BroadcastLike, Transpose, Slice, SliceLike, Concat, Stack,
// Split, SplitLike, Unstack and Reverse.
absl::Span<const absl::string_view> ViewOps();

// Returns copies that write each output element of one of ViewOps() once.
std::vector<ViewCopy> ViewCopiesOf(const KernelSpec& spec);

// Returns the position of the input of Pad or PadLike in the output.
std::vector<int64_t> PadBegin(const KernelSpec& spec);

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_VIEW_COPIES_H_
