#ifndef COMMON_LEARN_NN_RECURRENT_FORGET_BIAS_H_
#define COMMON_LEARN_NN_RECURRENT_FORGET_BIAS_H_

#include <algorithm>
#include <cstdint>

#include "common/compute/variables/initializer.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/initializers.h"
#include "proto/variable.pb.h"

namespace muster::internal {

// Returns the initializer of the bias of gates i, f, g and o, of `units`
// each, which is 1 for f and as `others`, a constant, for the other gates.
// Returns `others` if it is no constant.
inline Initializer ForgetBias(const Initializer& others, int64_t units) {
  if (!others.definition().has_constant()) return others;
  Tensor bias(DType::kFloat32, {4 * units});
  const auto values = bias.mutable_flat<float>();
  std::fill(values.begin(), values.end(),
            static_cast<float>(others.definition().constant().value()));
  std::fill_n(values.begin() + units, units, 1.0f);
  return FixedValue(bias);
}

}  // namespace muster::internal

#endif  // COMMON_LEARN_NN_RECURRENT_FORGET_BIAS_H_
