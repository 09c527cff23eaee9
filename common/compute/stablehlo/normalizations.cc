#include <cstdint>
#include <numeric>
#include <vector>

#include "common/compute/stablehlo/hlo_operators.h"
#include "common/compute/stablehlo/translations.h"

namespace muster {
namespace {

// Axes [begin, end).
std::vector<int64_t> Range(int begin, int end) {
  std::vector<int64_t> axes(end - begin);
  std::iota(axes.begin(), axes.end(), begin);
  return axes;
}

double EpsilonOf(const HloNode& node) {
  return node.Attribute<double>("epsilon", 0);
}

double CountOf(const HloValue& x, const std::vector<int64_t>& axes) {
  double count = 1;
  for (const int64_t axis : axes) {
    count *= static_cast<double>(x.shape().dim(static_cast<int>(axis)));
  }
  return count;
}

struct Moments {
  HloValue mean;  // Both keep the axes with extent 1.
  HloValue variance;
};

Moments MomentsOf(const HloValue& x, const std::vector<int64_t>& axes) {
  const double count = CountOf(x, axes);
  const HloValue mean = ReduceKeepingAxes(HloReduction::kSum, x, axes) / count;
  const HloValue distance = x - mean;
  return {
      mean,
      ReduceKeepingAxes(HloReduction::kSum, distance * distance, axes) / count};
}

HloValue Rsqrt(const HloValue& x) { return Unary("stablehlo.rsqrt", x); }

// Appends axes of extent 1 up to `rank`.
HloValue WithTrailingAxes(const HloValue& x, int rank) {
  Shape shape = x.shape();
  while (shape.rank() < rank) shape.InsertDim(shape.rank(), 1);
  return Reshape(x, shape);
}

}  // namespace

absl::StatusOr<HloValues> BatchNormTrainingToHlo(const HloNode& node) {
  const HloValue& x = node.input(0);
  const std::vector<int64_t> axes = Range(0, x.rank() - 1);
  const Moments moments = MomentsOf(x, axes);
  const HloValue factor =
      node.input(1) * Rsqrt(moments.variance + EpsilonOf(node));
  return HloValues{(x - moments.mean) * factor + node.input(2),
                   Reshape(moments.mean, node.output(1).shape),
                   Reshape(moments.variance, node.output(2).shape)};
}

absl::StatusOr<HloValues> BatchNormTrainingGradToHlo(const HloNode& node) {
  const HloValue& dy = node.input(0);
  const HloValue& x = node.input(1);
  const std::vector<int64_t> axes = Range(0, x.rank() - 1);
  const HloValue inverse = Rsqrt(node.input(4) + EpsilonOf(node));
  const HloValue normalized = (x - node.input(3)) * inverse;
  const HloValue sum = Reduce(HloReduction::kSum, dy, axes);
  const HloValue weighted_sum =
      Reduce(HloReduction::kSum, dy * normalized, axes);
  const HloValue along = (sum + normalized * weighted_sum) / CountOf(x, axes);
  return HloValues{(dy - along) * (node.input(2) * inverse), weighted_sum, sum};
}

HloValue BatchNormInferenceToHlo(const HloNode& node) {
  const HloValue factor =
      node.input(1) * Rsqrt(node.input(4) + EpsilonOf(node));
  return (node.input(0) - node.input(3)) * factor + node.input(2);
}

absl::StatusOr<HloValues> LayerNormToHlo(const HloNode& node) {
  const HloValue& x = node.input(0);
  const std::vector<int64_t> features =
      Range(x.rank() - node.input(1).rank(), x.rank());
  const Moments moments = MomentsOf(x, features);
  const HloValue inverse = Rsqrt(moments.variance + EpsilonOf(node));
  return HloValues{(x - moments.mean) * inverse * node.input(1) + node.input(2),
                   Reshape(moments.mean, node.output(1).shape),
                   Reshape(inverse, node.output(2).shape)};
}

absl::StatusOr<HloValues> LayerNormGradToHlo(const HloNode& node) {
  const HloValue& dy = node.input(0);
  const HloValue& x = node.input(1);
  const HloValue& scale = node.input(2);
  const int row_rank = x.rank() - scale.rank();
  const std::vector<int64_t> rows = Range(0, row_rank);
  const std::vector<int64_t> features = Range(row_rank, x.rank());
  const HloValue inverse = WithTrailingAxes(node.input(4), x.rank());
  const HloValue normalized =
      (x - WithTrailingAxes(node.input(3), x.rank())) * inverse;
  const HloValue scaled = dy * scale;
  const HloValue sum = ReduceKeepingAxes(HloReduction::kSum, scaled, features);
  const HloValue weighted_sum =
      ReduceKeepingAxes(HloReduction::kSum, scaled * normalized, features);
  const HloValue along =
      (sum + normalized * weighted_sum) / CountOf(x, features);
  return HloValues{(scaled - along) * inverse,
                   Reduce(HloReduction::kSum, dy * normalized, rows),
                   Reduce(HloReduction::kSum, dy, rows)};
}

}  // namespace muster
