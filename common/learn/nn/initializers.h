#ifndef COMMON_LEARN_NN_INITIALIZERS_H_
#define COMMON_LEARN_NN_INITIALIZERS_H_

#include <cstdint>

#include "common/core/tensor/tensor.h"
#include "proto/variable.pb.h"

// Keras' initializers, with Keras' defaults. A seed of 0 means that the seed is
// derived from the seed of the model and the name of the weight.
//
// Source: keras.initializers.
namespace muster {

proto::Initializer Zeros();
proto::Initializer Ones();
proto::Initializer Constant(double value);
// Initializes the weight with a copy of `value`, regardless of the seed.
proto::Initializer FixedValue(const Tensor& value);

struct RandomUniformOptions {
  double minval = -0.05;
  double maxval = 0.05;
  uint64_t seed = 0;
};
proto::Initializer RandomUniform(const RandomUniformOptions& options = {});

struct RandomNormalOptions {
  double mean = 0;
  double stddev = 0.05;
  uint64_t seed = 0;
};
proto::Initializer RandomNormal(const RandomNormalOptions& options = {});
// Values further than two standard deviations from the mean are drawn again.
proto::Initializer TruncatedNormal(const RandomNormalOptions& options = {});

struct VarianceScalingOptions {
  double scale = 1;
  proto::Initializer::VarianceScaling::Mode mode =
      proto::Initializer::VarianceScaling::FAN_IN;
  proto::Initializer::VarianceScaling::Distribution distribution =
      proto::Initializer::VarianceScaling::TRUNCATED_NORMAL;
  uint64_t seed = 0;
};
proto::Initializer VarianceScaling(const VarianceScalingOptions& options = {});

proto::Initializer GlorotUniform(uint64_t seed = 0);
proto::Initializer GlorotNormal(uint64_t seed = 0);
proto::Initializer HeUniform(uint64_t seed = 0);
proto::Initializer HeNormal(uint64_t seed = 0);
proto::Initializer LecunUniform(uint64_t seed = 0);
proto::Initializer LecunNormal(uint64_t seed = 0);

struct OrthogonalOptions {
  double gain = 1;
  uint64_t seed = 0;
};
proto::Initializer Orthogonal(const OrthogonalOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_INITIALIZERS_H_
