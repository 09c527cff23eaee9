#ifndef COMMON_LEARN_NN_REGULARIZERS_H_
#define COMMON_LEARN_NN_REGULARIZERS_H_

#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"
#include "common/learn/nn/config_visitor.h"

// Penalties on weights that training adds to the loss. Names, defaults and
// numerics are those of keras.regularizers.
namespace muster {

struct L1L2Options {
  double l1 = 0;
  double l2 = 0;

  void VisitConfig(ConfigVisitor& visitor);
};

// The penalty of a weight, a scalar of the weight's dtype. A value type, cheap
// to copy.
//
//   Dense(10, {.kernel_regularizer = L2(1e-4)})
//
// A custom regularizer is a function:
//
//   Regularizer([](Value weight) { return Sum(Abs(weight)) * 0.1; })
//
// Equivalent to: keras.regularizers.Regularizer.
class Regularizer {
 public:
  using Penalty = std::function<Value(Value weight)>;

  Regularizer() = default;  // No penalty; converts to false.
  explicit Regularizer(Penalty penalty) : penalty_(std::move(penalty)) {}
  // For a penalty that is equivalent to L1L2() with these factors.
  Regularizer(Penalty penalty, const L1L2Options& factors)
      : penalty_(std::move(penalty)), factors_(factors) {}

  explicit operator bool() const { return penalty_ != nullptr; }
  Value operator()(Value weight) const { return penalty_(weight); }
  // Unset if there is no penalty or a custom one.
  const std::optional<L1L2Options>& factors() const { return factors_; }

 private:
  Penalty penalty_;
  std::optional<L1L2Options> factors_;
};

// Returns l1 * sum(|w|).
Regularizer L1(double l1 = 0.01);
// Returns l2 * sum(w^2).
Regularizer L2(double l2 = 0.01);
// Returns l1 * sum(|w|) + l2 * sum(w^2). Factors that are negative or not
// finite are reported as kInvalidArgument to the builder when the weight is
// used.
Regularizer L1L2(const L1L2Options& options);

// A kind of regularizer. The table has all that a file can name.
struct RegularizerKind {
  // The case of JobRegularizer.kind.
  absl::string_view name;
  Regularizer (*make)(ConfigVisitor& visitor);
};

namespace internal {
// Returns the factor that the visitor sets, or Keras' default.
double VisitedFactor(ConfigVisitor& visitor, const char* name);
}  // namespace internal

inline constexpr RegularizerKind kRegularizerKinds[] = {
    {"l1",
     [](ConfigVisitor& v) { return L1(internal::VisitedFactor(v, "l1")); }},
    {"l2",
     [](ConfigVisitor& v) { return L2(internal::VisitedFactor(v, "l2")); }},
    {"l1_l2", MakeConfigured<Regularizer, L1L2Options, L1L2>},
};

}  // namespace muster

#endif  // COMMON_LEARN_NN_REGULARIZERS_H_
