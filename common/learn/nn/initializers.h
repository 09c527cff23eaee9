#ifndef COMMON_LEARN_NN_INITIALIZERS_H_
#define COMMON_LEARN_NN_INITIALIZERS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/config_visitor.h"
#include "proto/variable.pb.h"

// Keras' initializers, with Keras' defaults. A seed of 0 takes one from the
// seed of the model and the name of the weight.
namespace muster {

proto::Initializer Zeros();
proto::Initializer Ones();
proto::Initializer Constant(double value);
// The value itself, which a weight then has whatever the seed.
proto::Initializer FixedValue(const Tensor& value);

struct RandomUniformOptions {
  double minval = -0.05;
  double maxval = 0.05;
  uint64_t seed = 0;

  void VisitConfig(ConfigVisitor& visitor);
};
proto::Initializer RandomUniform(const RandomUniformOptions& options = {});

struct RandomNormalOptions {
  double mean = 0;
  double stddev = 0.05;
  uint64_t seed = 0;

  void VisitConfig(ConfigVisitor& visitor);
};
proto::Initializer RandomNormal(const RandomNormalOptions& options = {});
// Draws again what lies further than two standard deviations from the mean.
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

  void VisitConfig(ConfigVisitor& visitor);
};
proto::Initializer Orthogonal(const OrthogonalOptions& options = {});

// A kind of initializer. The table has all that a file can name.
struct InitializerKind {
  // The case of JobInitializer.kind (proto/job_layer.proto).
  absl::string_view name;
  proto::Initializer (*make)(ConfigVisitor& visitor);
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
     MakeConfigured<proto::Initializer, RandomUniformOptions, RandomUniform>},
    {"random_normal",
     MakeConfigured<proto::Initializer, RandomNormalOptions, RandomNormal>},
    {"truncated_normal",
     MakeConfigured<proto::Initializer, RandomNormalOptions, TruncatedNormal>},
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
    {"orthogonal",
     MakeConfigured<proto::Initializer, OrthogonalOptions, Orthogonal>},
};

}  // namespace muster

#endif  // COMMON_LEARN_NN_INITIALIZERS_H_
