#include "common/learn/train/job/job_layer_parts.h"

#include <cmath>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/regularizers.h"
#include "proto/training_job.pb.h"
#include "proto/variable.pb.h"

namespace muster {

using proto::JobActivation;
using proto::JobInitializer;

absl::StatusOr<Activation> ToActivation(JobActivation::Function function) {
  switch (function) {
    case JobActivation::LINEAR:
      return Activation::kLinear;
    case JobActivation::RELU:
      return Activation::kRelu;
    case JobActivation::RELU6:
      return Activation::kRelu6;
    case JobActivation::SIGMOID:
      return Activation::kSigmoid;
    case JobActivation::TANH:
      return Activation::kTanh;
    case JobActivation::SOFTPLUS:
      return Activation::kSoftplus;
    case JobActivation::SOFTSIGN:
      return Activation::kSoftsign;
    case JobActivation::SOFTMAX:
      return Activation::kSoftmax;
    case JobActivation::LOG_SOFTMAX:
      return Activation::kLogSoftmax;
    case JobActivation::GELU:
      return Activation::kGelu;
    case JobActivation::GELU_APPROXIMATE:
      return Activation::kGeluApproximate;
    case JobActivation::ELU:
      return Activation::kElu;
    case JobActivation::SELU:
      return Activation::kSelu;
    case JobActivation::SILU:
      return Activation::kSilu;
    case JobActivation::LEAKY_RELU:
      return Activation::kLeakyRelu;
    case JobActivation::HARD_SIGMOID:
      return Activation::kHardSigmoid;
    case JobActivation::EXPONENTIAL:
      return Activation::kExponential;
    default:
      break;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "activation: there is none with number ", static_cast<int>(function)));
}

proto::Initializer ToInitializer(const JobInitializer& job,
                                 const proto::Initializer& fallback) {
  // Absent fields keep what the options of the initializer have.
  const auto normal = [](const auto& given) {
    RandomNormalOptions options;
    if (given.has_mean()) options.mean = given.mean();
    if (given.has_stddev()) options.stddev = given.stddev();
    return options;
  };
  switch (job.kind_case()) {
    case JobInitializer::kZeros:
      return Zeros();
    case JobInitializer::kOnes:
      return Ones();
    case JobInitializer::kConstant:
      return Constant(job.constant().value());
    case JobInitializer::kRandomUniform: {
      const JobInitializer::RandomUniform& given = job.random_uniform();
      RandomUniformOptions options;
      if (given.has_minval()) options.minval = given.minval();
      if (given.has_maxval()) options.maxval = given.maxval();
      return RandomUniform(options);
    }
    case JobInitializer::kRandomNormal:
      return RandomNormal(normal(job.random_normal()));
    case JobInitializer::kTruncatedNormal:
      return TruncatedNormal(normal(job.truncated_normal()));
    case JobInitializer::kGlorotUniform:
      return GlorotUniform();
    case JobInitializer::kGlorotNormal:
      return GlorotNormal();
    case JobInitializer::kHeUniform:
      return HeUniform();
    case JobInitializer::kHeNormal:
      return HeNormal();
    case JobInitializer::kLecunUniform:
      return LecunUniform();
    case JobInitializer::kLecunNormal:
      return LecunNormal();
    case JobInitializer::kOrthogonal: {
      OrthogonalOptions options;
      if (job.orthogonal().has_gain()) options.gain = job.orthogonal().gain();
      return Orthogonal(options);
    }
    case JobInitializer::KIND_NOT_SET:
      break;
  }
  return fallback;
}

absl::StatusOr<Regularizer> ToRegularizer(absl::string_view field,
                                          const proto::JobRegularizer& job) {
  double l1 = 0;
  double l2 = 0;
  switch (job.kind_case()) {
    case proto::JobRegularizer::kL1:
      l1 = job.l1().has_l1() ? job.l1().l1() : 0.01;
      break;
    case proto::JobRegularizer::kL2:
      l2 = job.l2().has_l2() ? job.l2().l2() : 0.01;
      break;
    case proto::JobRegularizer::kL1L2:
      l1 = job.l1_l2().l1();
      l2 = job.l1_l2().l2();
      break;
    case proto::JobRegularizer::KIND_NOT_SET:
      return Regularizer();
  }
  const auto is_factor = [](double x) { return x >= 0 && std::isfinite(x); };
  if (!is_factor(l1) || !is_factor(l2)) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " must have finite factors of at least 0, got l1 ",
                     l1, " and l2 ", l2));
  }
  return L1L2({.l1 = l1, .l2 = l2});
}

absl::Status ExpectPositive(absl::string_view field, int64_t value) {
  if (value > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " must be at least 1, got ", value));
}

}  // namespace muster
