#include "common/learn/nn/image/augmentation.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/random.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"

namespace muster {
namespace {

Value Between(Value unit, double lower, double upper) {
  return unit * (upper - lower) + lower;
}

}  // namespace

Value ImageDraws::NextSeed() {
  const uint64_t draw = draw_count_++;
  return FoldInSeed(StepSeed(*images_.builder()),
                    static_cast<int64_t>(FoldIn(layer_seed_, draw)));
}

Value ImageDraws::Column() const {
  return Reshape(Slice(images_, {0, 0, 0, 0}, {-1, 1, 1, 1}), {-1, 1});
}

Value ImageDraws::Uniform(double lower, double upper) {
  const Value unit = RandomUniformLike(NextSeed(), Column());
  return Cast(Reshape(Between(unit, lower, upper), {-1, 1, 1, 1}),
              images_.dtype());
}

Value ImageDraws::Sign() {
  const Value unit = Uniform(0, 1);
  return Select(unit > 0.5, OnesLike(unit) * -1.0, OnesLike(unit));
}

Value ImageDraws::Normal() {
  return Cast(Reshape(RandomNormalLike(NextSeed(), Column()), {-1, 1, 1, 1}),
              images_.dtype());
}

Value ImageDraws::UniformOfBatch(int64_t count, double lower, double upper) {
  return Cast(Between(RandomUniform(NextSeed(), {count}), lower, upper),
              images_.dtype());
}

Value ImageDraws::NormalOfBatch(int64_t count) {
  return Cast(RandomNormal(NextSeed(), {count}), images_.dtype());
}

Value ImageDraws::NormalPixels() {
  return Cast(RandomNormalLike(NextSeed(), images_), images_.dtype());
}

Value AugmentationLayer::Call(Value x, const CallContext& context) {
  if (!IsFloating(x.dtype())) x = Cast(x, DType::kFloat32);
  if (!context.training) return x;
  const auto refuse = [&](const std::string& why) {
    x.builder()->ReportError(
        absl::InvalidArgumentError(absl::StrCat(kind(), ": ", why)));
    return Value();
  };
  const Shape& shape = x.shape();
  if (shape.rank() != 4 || shape.dim(1) < 1 || shape.dim(2) < 1) {
    return refuse(absl::StrCat(
        "expected images [batch, height, width, channels] of known height and "
        "width, not ",
        x.type().ToString()));
  }
  const std::vector<int64_t> counts = channel_counts();
  if (!counts.empty() &&
      std::find(counts.begin(), counts.end(), shape.dim(3)) == counts.end()) {
    return refuse(absl::StrCat("expected images of ",
                               absl::StrJoin(counts, " or "), " channels, not ",
                               x.type().ToString()));
  }
  if (const std::string mistake = Mistake(); !mistake.empty()) {
    return refuse(mistake);
  }
  ImageDraws draws(x, FoldIn(seed_ != 0 ? seed_ : context.seed, path()));
  return Augment(x, draws);
}

void AugmentationLayer::VisitSeed(ConfigVisitor& visitor, ConfigName name) {
  visitor.Visit(name, seed_);
  const std::string mistake = Mistake();
  if (mistake.empty()) return;
  // Mistakes begin with the hyperparameter.
  const size_t space = mistake.find(' ');
  visitor.Refuse(mistake.substr(0, space), mistake.substr(space + 1));
}

void VisitValueRange(ConfigVisitor& visitor, ValueRange& range) {
  std::vector<double> numbers = {range.lower, range.upper};
  visitor.Visit(
      Described("value_range", "The least and the greatest value of a pixel."),
      numbers);
  if (numbers.size() != 2 || !(numbers[0] < numbers[1])) {
    visitor.Refuse("value_range", "must be two ascending numbers");
    return;
  }
  range = {.lower = numbers[0], .upper = numbers[1]};
}

}  // namespace muster
