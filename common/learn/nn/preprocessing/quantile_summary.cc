#include "common/learn/nn/preprocessing/quantile_summary.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

namespace muster {
namespace {

// The value at `x` of the line through the points (xs[i], ys[i]), as NumPy's
// interp(). `xs` ascend.
double Interpolate(double x, const std::vector<float>& xs,
                   const std::vector<float>& ys) {
  const auto after = std::upper_bound(
      xs.begin(), xs.end(), x,
      [](double value, float element) { return value < element; });
  if (after == xs.begin()) return ys.front();
  const size_t i = static_cast<size_t>(after - xs.begin()) - 1;
  if (i + 1 >= xs.size()) return ys.back();
  const double x0 = xs[i];
  if (x0 == x) return ys[i];
  const double slope =
      (static_cast<double>(ys[i + 1]) - ys[i]) / (xs[i + 1] - x0);
  return slope * (x - x0) + ys[i];
}

}  // namespace

void QuantileSummary::Add(absl::Span<const float> numbers) {
  std::vector<float> sorted(numbers.begin(), numbers.end());
  std::sort(sorted.begin(), sorted.end());
  const double increment =
      static_cast<double>(sorted.size()) / (1.0 / epsilon_);
  const double step = std::max(increment, 1.0);
  std::vector<std::pair<float, float>> merged;
  for (size_t i = static_cast<size_t>(step - 1); i < sorted.size();
       i += static_cast<size_t>(step)) {
    merged.emplace_back(sorted[i], static_cast<float>(step));
  }
  for (size_t i = 0; i < values_.size(); ++i) {
    merged.emplace_back(values_[i], weights_[i]);
  }
  std::stable_sort(
      merged.begin(), merged.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  values_.clear();
  weights_.clear();
  for (const auto& [value, weight] : merged) {
    values_.push_back(value);
    weights_.push_back(weight);
  }
  Compress(epsilon_);
}

void QuantileSummary::Compress(double epsilon) {
  if (static_cast<double>(values_.size()) * epsilon < 1) return;
  std::vector<float> sums(weights_.size());
  std::partial_sum(weights_.begin(), weights_.end(), sums.begin());
  std::vector<float> shares(sums.size());
  for (size_t i = 0; i < sums.size(); ++i) shares[i] = sums[i] / sums.back();
  std::vector<float> values;
  std::vector<float> weights;
  double previous_sum = 0;
  const auto count = static_cast<size_t>(std::ceil(1.0 / epsilon));
  for (size_t i = 0; i < count; ++i) {
    const double share = epsilon + static_cast<double>(i) * epsilon;
    const double sum = Interpolate(share, shares, sums);
    values.push_back(static_cast<float>(Interpolate(share, shares, values_)));
    weights.push_back(static_cast<float>(sum - previous_sum));
    previous_sum = sum;
  }
  values_ = std::move(values);
  weights_ = std::move(weights);
}

std::vector<float> QuantileSummary::Boundaries(int64_t bin_count) const {
  QuantileSummary bins = *this;
  bins.Compress(1.0 / static_cast<double>(bin_count));
  if (!bins.values_.empty()) bins.values_.pop_back();
  return bins.values_;
}

}  // namespace muster
