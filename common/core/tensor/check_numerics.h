#ifndef COMMON_CORE_TENSOR_CHECK_NUMERICS_H_
#define COMMON_CORE_TENSOR_CHECK_NUMERICS_H_

#include "absl/status/status.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// Sets whether a step of this process fails at the first value that is NaN or
// infinite (Executable::Run()). Off by default. Set it before the first graph
// is compiled. Thread-safe.
//
// Equivalent to: tf.debugging.enable_check_numerics.
void EnableCheckNumerics(bool enable);
bool ChecksNumerics();

// Returns an error if an element of `value`, in memory of the host, is NaN or
// infinite. Integers, bools and strings are always fine. Thread-safe.
//   kInvalidArgument  the message gives the number of such elements and the
//                     first of them
//
// Equivalent to: tf.debugging.check_numerics.
absl::Status CheckFinite(const Tensor& value);

}  // namespace muster

#endif  // COMMON_CORE_TENSOR_CHECK_NUMERICS_H_
