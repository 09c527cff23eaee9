#ifndef PS_SLAB_H_
#define PS_SLAB_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// A tensor of zeros for something large that is read and written at random: in
// huge pages where the machine gives them, because a table's rows otherwise
// cost a page walk each. Memory is taken when it is first touched.
//   kResourceExhausted  the machine has no such memory
absl::StatusOr<Tensor> AllocateSlab(const TensorType& type);

}  // namespace muster

#endif  // PS_SLAB_H_
