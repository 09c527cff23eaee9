#ifndef COMMON_LEARN_NN_RECURRENT_FORGET_BIAS_H_
#define COMMON_LEARN_NN_RECURRENT_FORGET_BIAS_H_

#include <cstdint>

#include "common/compute/variables/initializer.h"
#include "common/learn/nn/initializers.h"
#include "proto/variable.pb.h"

namespace muster::internal {

// Returns the initializer of the bias of gates i, f, g and o, of `units`
// each, which is 1 for f. Others are as `others` makes a bias of the gate i,
// and one of the gates g and o together, as in Keras.
inline Initializer ForgetBias(const Initializer& others, int64_t units) {
  proto::Initializer bias;
  bias.set_seed(others.definition().seed());
  const auto add = [&](int64_t row_count, const Initializer& initializer) {
    auto* const part = bias.mutable_concatenation()->add_parts();
    part->set_row_count(row_count);
    *part->mutable_initializer() = initializer.definition();
    // Each part has a seed of its own.
    part->mutable_initializer()->clear_seed();
  };
  add(units, others);
  add(units, Ones());
  add(2 * units, others);
  return Initializer(bias);
}

}  // namespace muster::internal

#endif  // COMMON_LEARN_NN_RECURRENT_FORGET_BIAS_H_
