#include "common/learn/nn/initializers.h"

#include <cstdint>

#include "common/compute/variables/initializer.h"
#include "common/core/tensor/tensor.h"
#include "common/core/tensor/tensor_codec.h"
#include "common/learn/nn/config_visitor.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

using Scaling = proto::Initializer::VarianceScaling;

Scaling::Mode ModeOf(FanMode mode) {
  switch (mode) {
    case FanMode::kFanIn:
      return Scaling::FAN_IN;
    case FanMode::kFanOut:
      return Scaling::FAN_OUT;
    case FanMode::kFanAverage:
      return Scaling::FAN_AVG;
  }
  return Scaling::FAN_IN;
}

Scaling::Distribution DistributionOf(ScalingDistribution distribution) {
  switch (distribution) {
    case ScalingDistribution::kTruncatedNormal:
      return Scaling::TRUNCATED_NORMAL;
    case ScalingDistribution::kUntruncatedNormal:
      return Scaling::UNTRUNCATED_NORMAL;
    case ScalingDistribution::kUniform:
      return Scaling::UNIFORM;
  }
  return Scaling::TRUNCATED_NORMAL;
}

Initializer Normal(const RandomNormalOptions& options, bool truncated) {
  proto::Initializer definition;
  definition.set_seed(options.seed);
  definition.mutable_normal()->set_mean(options.mean);
  definition.mutable_normal()->set_standard_deviation(options.stddev);
  definition.mutable_normal()->set_truncated(truncated);
  return Initializer(definition);
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

Initializer Zeros() { return Constant(0); }
Initializer Ones() { return Constant(1); }

Initializer Constant(double value) {
  proto::Initializer definition;
  definition.mutable_constant()->set_value(value);
  return Initializer(definition);
}

Initializer FixedValue(const Tensor& value) {
  proto::Initializer definition;
  *definition.mutable_value() = EncodeTensor(value);
  return Initializer(definition);
}

Initializer RandomUniform(const RandomUniformOptions& options) {
  proto::Initializer definition;
  definition.set_seed(options.seed);
  definition.mutable_uniform()->set_minimum(options.minval);
  definition.mutable_uniform()->set_maximum(options.maxval);
  return Initializer(definition);
}

Initializer RandomNormal(const RandomNormalOptions& options) {
  return Normal(options, /*truncated=*/false);
}

Initializer TruncatedNormal(const RandomNormalOptions& options) {
  return Normal(options, /*truncated=*/true);
}

Initializer VarianceScaling(const VarianceScalingOptions& options) {
  proto::Initializer definition;
  definition.set_seed(options.seed);
  Scaling& scaling = *definition.mutable_variance_scaling();
  scaling.set_scale(options.scale);
  scaling.set_mode(ModeOf(options.mode));
  scaling.set_distribution(DistributionOf(options.distribution));
  return Initializer(definition);
}

Initializer GlorotUniform(uint64_t seed) {
  return VarianceScaling({.mode = FanMode::kFanAverage,
                          .distribution = ScalingDistribution::kUniform,
                          .seed = seed});
}

Initializer GlorotNormal(uint64_t seed) {
  return VarianceScaling({.mode = FanMode::kFanAverage, .seed = seed});
}

Initializer HeUniform(uint64_t seed) {
  return VarianceScaling({.scale = 2,
                          .distribution = ScalingDistribution::kUniform,
                          .seed = seed});
}

Initializer HeNormal(uint64_t seed) {
  return VarianceScaling({.scale = 2, .seed = seed});
}

Initializer LecunUniform(uint64_t seed) {
  return VarianceScaling(
      {.distribution = ScalingDistribution::kUniform, .seed = seed});
}

Initializer LecunNormal(uint64_t seed) {
  return VarianceScaling({.seed = seed});
}

Initializer Orthogonal(const OrthogonalOptions& options) {
  proto::Initializer definition;
  definition.set_seed(options.seed);
  definition.mutable_orthogonal()->set_gain(options.gain);
  return Initializer(definition);
}

}  // namespace muster
