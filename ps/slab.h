#ifndef PS_SLAB_H_
#define PS_SLAB_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// Returns a tensor of zeros in memory for large arrays with random access. Uses
// huge pages if the machine has them: otherwise each access to a row of a table
// costs a page walk. Memory is committed when it is first touched.
//   kResourceExhausted  the mapping failed
absl::StatusOr<Tensor> AllocateSlab(const TensorType& type);

}  // namespace muster

#endif  // PS_SLAB_H_
