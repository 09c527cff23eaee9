#include "common/learn/nn/initializers.h"

#include <cstdint>

#include "common/core/tensor/tensor.h"
#include "common/core/tensor/tensor_codec.h"
#include "common/learn/nn/config_visitor.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

using Scaling = proto::Initializer::VarianceScaling;

proto::Initializer Normal(const RandomNormalOptions& options, bool truncated) {
  proto::Initializer initializer;
  initializer.set_seed(options.seed);
  initializer.mutable_normal()->set_mean(options.mean);
  initializer.mutable_normal()->set_standard_deviation(options.stddev);
  initializer.mutable_normal()->set_truncated(truncated);
  return initializer;
}

}  // namespace

namespace internal {

uint64_t VisitedSeed(ConfigVisitor& visitor) {
  uint64_t seed = 0;
  visitor.Visit("seed", seed);
  return seed;
}

double VisitedValue(ConfigVisitor& visitor) {
  double value = 0;
  visitor.Visit("value", value);
  return value;
}

}  // namespace internal

void RandomUniformOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("minval", minval);
  visitor.Visit("maxval", maxval);
  visitor.Visit("seed", seed);
}

void RandomNormalOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("mean", mean);
  visitor.Visit("stddev", stddev);
  visitor.Visit("seed", seed);
}

void OrthogonalOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("gain", gain);
  visitor.Visit("seed", seed);
}

proto::Initializer Zeros() { return Constant(0); }
proto::Initializer Ones() { return Constant(1); }

proto::Initializer Constant(double value) {
  proto::Initializer initializer;
  initializer.mutable_constant()->set_value(value);
  return initializer;
}

proto::Initializer FixedValue(const Tensor& value) {
  proto::Initializer initializer;
  *initializer.mutable_value() = EncodeTensor(value);
  return initializer;
}

proto::Initializer RandomUniform(const RandomUniformOptions& options) {
  proto::Initializer initializer;
  initializer.set_seed(options.seed);
  initializer.mutable_uniform()->set_minimum(options.minval);
  initializer.mutable_uniform()->set_maximum(options.maxval);
  return initializer;
}

proto::Initializer RandomNormal(const RandomNormalOptions& options) {
  return Normal(options, /*truncated=*/false);
}

proto::Initializer TruncatedNormal(const RandomNormalOptions& options) {
  return Normal(options, /*truncated=*/true);
}

proto::Initializer VarianceScaling(const VarianceScalingOptions& options) {
  proto::Initializer initializer;
  initializer.set_seed(options.seed);
  Scaling& scaling = *initializer.mutable_variance_scaling();
  scaling.set_scale(options.scale);
  scaling.set_mode(options.mode);
  scaling.set_distribution(options.distribution);
  return initializer;
}

proto::Initializer GlorotUniform(uint64_t seed) {
  return VarianceScaling({.mode = Scaling::FAN_AVG,
                          .distribution = Scaling::UNIFORM,
                          .seed = seed});
}

proto::Initializer GlorotNormal(uint64_t seed) {
  return VarianceScaling({.mode = Scaling::FAN_AVG, .seed = seed});
}

proto::Initializer HeUniform(uint64_t seed) {
  return VarianceScaling(
      {.scale = 2, .distribution = Scaling::UNIFORM, .seed = seed});
}

proto::Initializer HeNormal(uint64_t seed) {
  return VarianceScaling({.scale = 2, .seed = seed});
}

proto::Initializer LecunUniform(uint64_t seed) {
  return VarianceScaling({.distribution = Scaling::UNIFORM, .seed = seed});
}

proto::Initializer LecunNormal(uint64_t seed) {
  return VarianceScaling({.seed = seed});
}

proto::Initializer Orthogonal(const OrthogonalOptions& options) {
  proto::Initializer initializer;
  initializer.set_seed(options.seed);
  initializer.mutable_orthogonal()->set_gain(options.gain);
  return initializer;
}

}  // namespace muster
