#include "common/learn/nn/layers/noise.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/random.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/dropout.h"
#include "common/learn/nn/layer.h"

namespace muster {
namespace {

class GaussianNoiseLayer : public NoiseLayer {
 public:
  GaussianNoiseLayer(double stddev, const NoiseOptions& options)
      : NoiseLayer("stddev", stddev, options) {}

 protected:
  bool accepts_one() const override { return true; }
  Value AddNoise(Value x, double stddev, Value seed) override {
    return x + RandomNormalLike(seed, x, x.dtype()) * stddev;
  }
};

class GaussianDropoutLayer : public NoiseLayer {
 public:
  GaussianDropoutLayer(double rate, const NoiseOptions& options)
      : NoiseLayer("rate", rate, options) {}

 protected:
  Value AddNoise(Value x, double rate, Value seed) override {
    const double stddev = std::sqrt(rate / (1 - rate));
    return x * (RandomNormalLike(seed, x, x.dtype()) * stddev + 1.0);
  }
};

class AlphaDropoutLayer : public NoiseLayer {
 public:
  AlphaDropoutLayer(double rate, const NoiseOptions& options)
      : NoiseLayer("rate", rate, options) {}

 protected:
  Value AddNoise(Value x, double rate, Value seed) override {
    // -alpha * scale of selu.
    constexpr double kLimit = -1.7580993408473766;
    const double a = 1 / std::sqrt((1 - rate) * (1 + rate * kLimit * kLimit));
    const double b = -a * kLimit * rate;
    const Value keeps = DropoutMask(seed, x, 1 - rate);
    return Select(keeps, x, ScalarLike(x, kLimit)) * a + b;
  }
};

class SpatialDropoutLayer : public NoiseLayer {
 public:
  SpatialDropoutLayer(int axis_count, double rate, const NoiseOptions& options)
      : NoiseLayer("rate", rate, options), axis_count_(axis_count) {}

  std::string kind() const override {
    return absl::StrCat("SpatialDropout", axis_count_, "D");
  }

 protected:
  Value AddNoise(Value x, double rate, Value seed) override {
    const int rank = axis_count_ + 2;
    if (x.shape().rank() != rank) {
      x.builder()->ReportError(absl::InvalidArgumentError(
          absl::StrCat(kind(), " ", name(), ": expected an input of rank ",
                       rank, ", got ", x.type().ToString())));
      return Value();
    }
    std::vector<int64_t> noise_shape(rank, 1);
    noise_shape.front() = -1;
    noise_shape.back() = -1;
    return internal::DropWithNoiseShape(x, seed, rate, noise_shape, kind());
  }

 private:
  const int axis_count_;
};

}  // namespace

bool NoiseLayer::is_valid() const {
  return amount_ >= 0 && (amount_ < 1 || (amount_ == 1 && accepts_one()));
}

void NoiseLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit(parameter_, amount_);
  if (!is_valid()) {
    visitor.Refuse(parameter_,
                   absl::StrCat("must be ", range(), ", got ", amount_));
  }
  visitor.Visit("seed", seed_);
}

Value NoiseLayer::Call(Value x, const CallContext& context) {
  if (!is_valid()) {
    x.builder()->ReportError(absl::InvalidArgumentError(
        absl::StrCat(kind(), " ", name(), ": ", parameter_, " is ", amount_,
                     ", expected a number ", range())));
    return Value();
  }
  if (!context.training || amount_ == 0) return x;
  const uint64_t layer_seed = FoldIn(seed_ != 0 ? seed_ : context.seed, path());
  return AddNoise(
      x, amount_,
      FoldInSeed(StepSeed(*x.builder()), static_cast<int64_t>(layer_seed)));
}

LayerPtr GaussianNoise(double stddev, const NoiseOptions& options) {
  return std::make_shared<GaussianNoiseLayer>(stddev, options);
}

LayerPtr GaussianDropout(double rate, const NoiseOptions& options) {
  return std::make_shared<GaussianDropoutLayer>(rate, options);
}

LayerPtr AlphaDropout(double rate, const NoiseOptions& options) {
  return std::make_shared<AlphaDropoutLayer>(rate, options);
}

LayerPtr SpatialDropout1D(double rate, const NoiseOptions& options) {
  return std::make_shared<SpatialDropoutLayer>(1, rate, options);
}

LayerPtr SpatialDropout2D(double rate, const NoiseOptions& options) {
  return std::make_shared<SpatialDropoutLayer>(2, rate, options);
}

LayerPtr SpatialDropout3D(double rate, const NoiseOptions& options) {
  return std::make_shared<SpatialDropoutLayer>(3, rate, options);
}

}  // namespace muster
