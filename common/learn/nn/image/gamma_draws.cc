#include "common/learn/nn/image/gamma_draws.h"

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/learn/nn/image/augmentation.h"

namespace muster::internal {
namespace {

constexpr int kAttempts = 10;

using Draw = absl::FunctionRef<Value()>;

// The logarithms of numbers from Gamma(alpha, 1): the numbers themselves are 0
// in float32 where alpha is small.
Value LogGamma(Value alpha, Draw uniform, Draw normal) {
  // A number from Gamma(alpha + 1), times u^(1 / alpha).
  const Value d = alpha + 2.0 / 3.0;
  const Value c = Rsqrt(d * 9.0);
  const Value scale = Log(1.0 - uniform()) / alpha + Log(d);
  Value log_v = ZerosLike(scale);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const Value x = normal();
    const Value root = c * x + 1.0;
    const Value is_positive = root > 0;
    const Value candidate =
        Log(Select(is_positive, root, OnesLike(root))) * 3.0;
    const Value limit =
        Square(x) * 0.5 + d * (1.0 - Exp(candidate) + candidate);
    const Value is_taken =
        LogicalAnd(is_positive, Log(1.0 - uniform()) < limit);
    log_v = Select(is_taken, candidate, log_v);
  }
  return scale + log_v;
}

Value LogGammaOfBatch(int64_t count, double alpha, ImageDraws& draws) {
  const auto uniform = [&] { return draws.UniformOfBatch(count, 0, 1); };
  const auto normal = [&] { return draws.NormalOfBatch(count); };
  return LogGamma(ScalarLike(uniform(), alpha), uniform, normal);
}

}  // namespace

Value DrawBeta(Value alpha, ImageDraws& draws) {
  const auto log_gamma = [&] {
    return LogGamma(
        alpha, [&] { return draws.Uniform(0, 1); },
        [&] { return draws.Normal(); });
  };
  const Value first = log_gamma();
  return Sigmoid(first - log_gamma());
}

Value DrawBetaOfBatch(double alpha, ImageDraws& draws) {
  const Value first = LogGammaOfBatch(1, alpha, draws);
  return Sigmoid(first - LogGammaOfBatch(1, alpha, draws));
}

Value DrawDirichletOfBatch(int64_t count, double alpha, ImageDraws& draws) {
  return Softmax(LogGammaOfBatch(count, alpha, draws));
}

}  // namespace muster::internal
