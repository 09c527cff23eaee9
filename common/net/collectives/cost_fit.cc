#include "common/net/collectives/cost_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

namespace muster {
namespace {

constexpr size_t kConstantCount = 7;
using Row = std::array<double, kConstantCount>;

constexpr double kCachedBytesMin = 1 << 16;
constexpr double kCachedBytesMax = 1 << 26;

// The loss is quadratic for errors up to this one and linear for larger errors,
// so that a sample taken on a busy machine does not distort the fit.
constexpr double kTolerableError = 0.1;
constexpr int kReweightingCount = 20;
constexpr int kSweepCount = 2000;

Row ChargesOf(const AllReduceSample& sample, const CostModel& costs) {
  const CostCharges charges =
      CountCharges(sample.algorithm, sample.size, sample.size_bytes, costs);
  return {charges.latencies,     charges.overheads,     charges.link_bytes,
          charges.far_bytes,     charges.reduced_bytes, charges.wakes,
          charges.crossing_bytes};
}

CostModel WithConstants(CostModel costs, const Row& constants) {
  costs.link.latency_seconds = constants[0];
  costs.link.overhead_seconds = constants[1];
  costs.link.seconds_per_byte = constants[2];
  costs.far_seconds_per_byte = constants[3];
  costs.reduce_seconds_per_byte = constants[4];
  costs.wake_seconds = constants[5];
  costs.crossing_seconds_per_byte = constants[6];
  return costs;
}

// Minimizes a quadratic over non-negative values by coordinate descent. `gram`
// has been scaled so that its diagonal is 1, or 0 for a charge that no sample
// has.
Row MinimizeNonNegative(const std::array<Row, kConstantCount>& gram,
                        const Row& target) {
  Row solution = {};
  for (int sweep = 0; sweep < kSweepCount; ++sweep) {
    for (size_t i = 0; i < kConstantCount; ++i) {
      if (gram[i][i] == 0) continue;
      double rest = target[i];
      for (size_t j = 0; j < kConstantCount; ++j) {
        if (j != i) rest -= gram[i][j] * solution[j];
      }
      solution[i] = std::max(0.0, rest / gram[i][i]);
    }
  }
  return solution;
}

// Fits by weighted least squares of the relative errors.
CostModel FitWeighted(absl::Span<const AllReduceSample> samples,
                      absl::Span<const double> weights,
                      const CostModel& shape) {
  std::array<Row, kConstantCount> gram = {};
  Row target = {};
  for (size_t s = 0; s < samples.size(); ++s) {
    Row relative = ChargesOf(samples[s], shape);
    for (double& value : relative) value /= samples[s].seconds;
    for (size_t i = 0; i < kConstantCount; ++i) {
      target[i] += weights[s] * relative[i];
      for (size_t j = 0; j < kConstantCount; ++j) {
        gram[i][j] += weights[s] * relative[i] * relative[j];
      }
    }
  }
  Row scale;
  for (size_t i = 0; i < kConstantCount; ++i) {
    scale[i] = gram[i][i] > 0 ? 1 / std::sqrt(gram[i][i]) : 0;
  }
  for (size_t i = 0; i < kConstantCount; ++i) {
    target[i] *= scale[i];
    for (size_t j = 0; j < kConstantCount; ++j) {
      gram[i][j] *= scale[i] * scale[j];
    }
  }
  Row constants = MinimizeNonNegative(gram, target);
  for (size_t i = 0; i < kConstantCount; ++i) constants[i] *= scale[i];
  return WithConstants(shape, constants);
}

double RelativeError(const AllReduceSample& sample, const CostModel& costs) {
  return std::abs(PredictSeconds(sample, costs) / sample.seconds - 1);
}

double LossOf(absl::Span<const AllReduceSample> samples,
              const CostModel& costs) {
  double loss = 0;
  for (const AllReduceSample& sample : samples) {
    const double error = RelativeError(sample, costs);
    loss += error < kTolerableError
                ? error * error
                : kTolerableError * (2 * error - kTolerableError);
  }
  return loss;
}

CostModel FitShape(absl::Span<const AllReduceSample> samples,
                   const CostModel& shape) {
  std::vector<double> weights(samples.size(), 1.0);
  CostModel costs = FitWeighted(samples, weights, shape);
  for (int i = 0; i < kReweightingCount; ++i) {
    for (size_t s = 0; s < samples.size(); ++s) {
      weights[s] =
          std::min(1.0, kTolerableError / RelativeError(samples[s], costs));
    }
    costs = FitWeighted(samples, weights, shape);
  }
  return costs;
}

}  // namespace

double PredictSeconds(const AllReduceSample& sample, const CostModel& costs) {
  return PredictAllReduceSeconds(sample.algorithm, sample.size,
                                 sample.size_bytes, costs);
}

CostModel FitCosts(absl::Span<const AllReduceSample> samples,
                   int processor_count) {
  CostModel shape;
  shape.processor_count = processor_count;
  CostModel best = FitShape(samples, shape);
  for (double cached_bytes = kCachedBytesMin; cached_bytes <= kCachedBytesMax;
       cached_bytes *= 2) {
    shape.cached_bytes = cached_bytes;
    const CostModel costs = FitShape(samples, shape);
    if (LossOf(samples, costs) < LossOf(samples, best)) best = costs;
  }
  return best;
}

}  // namespace muster
