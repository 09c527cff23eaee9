#ifndef COMMON_LEARN_NN_ATTENTION_CAUSAL_MASK_H_
#define COMMON_LEARN_NN_ATTENTION_CAUSAL_MASK_H_

#include <cstdint>

#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"

namespace muster::internal {

// Returns bool [time, source time], true at and before the diagonal.
inline Tensor CausalMask(int64_t time_count, int64_t source_time_count) {
  Tensor mask(DType::kBool, {time_count, source_time_count});
  const auto flat = mask.mutable_flat<bool>();
  for (int64_t i = 0; i < time_count; ++i) {
    for (int64_t j = 0; j < source_time_count; ++j) {
      flat[i * source_time_count + j] = j <= i;
    }
  }
  return mask;
}

}  // namespace muster::internal

#endif  // COMMON_LEARN_NN_ATTENTION_CAUSAL_MASK_H_
