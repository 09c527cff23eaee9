#ifndef COMMON_LEARN_NN_INITIALIZERS_H_
#define COMMON_LEARN_NN_INITIALIZERS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/compute/variables/initializer.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/config_visitor.h"

// Keras' initializers, with Keras' defaults. A seed of 0 means that the seed is
// derived from the seed of the model and the name of the weight.
//
// Source: keras.initializers.
namespace muster {

Initializer Zeros();
Initializer Ones();
Initializer Constant(double value);
// Initializes the weight with a copy of `value`, regardless of the seed.
Initializer FixedValue(const Tensor& value);

// Uniform in [minval, maxval).
struct RandomUniformOptions {
  double minval = -0.05;
  double maxval = 0.05;
  uint64_t seed = 0;

  void VisitConfig(ConfigVisitor& visitor);
};
Initializer RandomUniform(const RandomUniformOptions& options = {});

// Normal with this mean and standard deviation.
struct RandomNormalOptions {
  double mean = 0;
  double stddev = 0.05;
  uint64_t seed = 0;

  void VisitConfig(ConfigVisitor& visitor);
};
Initializer RandomNormal(const RandomNormalOptions& options = {});
// Values further than two standard deviations from the mean are drawn again.
Initializer TruncatedNormal(const RandomNormalOptions& options = {});

// Samples with mean 0 and variance scale / max(1, n), where n is the fan-in of
// the weight, its fan-out, or the mean of both. Fan-in and fan-out are the last
// two extents, each times the product of the others. The uniform distribution
// is over [-limit, limit) with limit = sqrt(3 * variance).
enum class FanMode { kFanIn, kFanOut, kFanAverage };
enum class ScalingDistribution {
  kTruncatedNormal,
  kUntruncatedNormal,
  kUniform
};
struct VarianceScalingOptions {
  double scale = 1;
  FanMode mode = FanMode::kFanIn;
  ScalingDistribution distribution = ScalingDistribution::kTruncatedNormal;
  uint64_t seed = 0;
};
Initializer VarianceScaling(const VarianceScalingOptions& options = {});

// Scale 1, mean of fan-in and fan-out. Source: Glorot and Bengio,
// "Understanding the difficulty of training deep feedforward neural networks",
// 2010.
Initializer GlorotUniform(uint64_t seed = 0);
Initializer GlorotNormal(uint64_t seed = 0);
// Scale 2, fan-in. Source: He et al., "Delving Deep into Rectifiers", 2015
// (arXiv:1502.01852).
Initializer HeUniform(uint64_t seed = 0);
Initializer HeNormal(uint64_t seed = 0);
// Scale 1, fan-in. Source: LeCun et al., "Efficient BackProp", 1998.
Initializer LecunUniform(uint64_t seed = 0);
Initializer LecunNormal(uint64_t seed = 0);

// An orthogonal matrix times `gain`: the rows are orthogonal, or the columns if
// there are fewer. All axes but the last count as rows. Source: Saxe et al.,
// 2013 (arXiv:1312.6120).
struct OrthogonalOptions {
  double gain = 1;
  uint64_t seed = 0;

  void VisitConfig(ConfigVisitor& visitor);
};
Initializer Orthogonal(const OrthogonalOptions& options = {});

// A kind of initializer. The table has all that a file can name.
struct InitializerKind {
  // The case of JobInitializer.kind.
  absl::string_view name;
  Initializer (*make)(ConfigVisitor& visitor);
};

namespace internal {
uint64_t VisitedSeed(ConfigVisitor& visitor);
double VisitedValue(ConfigVisitor& visitor);
}  // namespace internal

inline constexpr InitializerKind kInitializerKinds[] = {
    {"zeros", [](ConfigVisitor&) { return Zeros(); }},
    {"ones", [](ConfigVisitor&) { return Ones(); }},
    {"constant",
     [](ConfigVisitor& v) { return Constant(internal::VisitedValue(v)); }},
    {"random_uniform",
     MakeConfigured<Initializer, RandomUniformOptions, RandomUniform>},
    {"random_normal",
     MakeConfigured<Initializer, RandomNormalOptions, RandomNormal>},
    {"truncated_normal",
     MakeConfigured<Initializer, RandomNormalOptions, TruncatedNormal>},
    {"glorot_uniform",
     [](ConfigVisitor& v) { return GlorotUniform(internal::VisitedSeed(v)); }},
    {"glorot_normal",
     [](ConfigVisitor& v) { return GlorotNormal(internal::VisitedSeed(v)); }},
    {"he_uniform",
     [](ConfigVisitor& v) { return HeUniform(internal::VisitedSeed(v)); }},
    {"he_normal",
     [](ConfigVisitor& v) { return HeNormal(internal::VisitedSeed(v)); }},
    {"lecun_uniform",
     [](ConfigVisitor& v) { return LecunUniform(internal::VisitedSeed(v)); }},
    {"lecun_normal",
     [](ConfigVisitor& v) { return LecunNormal(internal::VisitedSeed(v)); }},
    {"orthogonal", MakeConfigured<Initializer, OrthogonalOptions, Orthogonal>},
};

}  // namespace muster

#endif  // COMMON_LEARN_NN_INITIALIZERS_H_
