#ifndef COMMON_COMPUTE_OPTIMIZERS_UPDATE_RULE_H_
#define COMMON_COMPUTE_OPTIMIZERS_UPDATE_RULE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/optimizer.pb.h"

namespace muster {

// What an update rule keeps beside a variable: an array as large as the
// variable, filled with `initial_value` before the first gradient.
struct SlotSpec {
  std::string name;  // Keras' name: "momentum", "velocity", "accumulator", ...
  double initial_value = 0;
};

// How one gradient changes one variable. Names, defaults and numerics are those
// of keras.optimizers.
//
// Every element is computed from itself, its gradient and its slots alone, with
// the same operations on every machine. So the pieces of a variable may be
// applied in any order, by several threads, with the same `step`, and the bits
// are those of applying the whole at once.
//
// Thread-safe: immutable.
class UpdateRule {
 public:
  // No rule has more slots than this.
  static constexpr int kSlotCountMax = 4;

  // Absent fields of `optimizer` have Keras' defaults.
  //   kInvalidArgument  no rule is set, learning_rate stands beside a
  //                     learning_rate_schedule, more than one way of clipping
  //                     is set, or a hyperparameter is out of range; the
  //                     message names the rule and the fields
  static absl::StatusOr<std::unique_ptr<UpdateRule>> Create(
      const proto::Optimizer& optimizer);

  virtual ~UpdateRule() = default;

  // OptimizerKind::rule_name: "sgd", "adam", ...
  virtual absl::string_view name() const = 0;

  virtual absl::Span<const SlotSpec> slots() const = 0;

  // What the schedule says at `step`.
  virtual double LearningRate(int64_t step) const = 0;

  // One pass over `count` elements. `step` is the number of gradients that the
  // variable has taken before this one. slots[i] belongs to slots()[i]. Arrays
  // do not overlap.
  virtual void Apply(int64_t step, int64_t count, const float* gradient,
                     float* variable, absl::Span<float* const> slots) const = 0;
  virtual void Apply(int64_t step, int64_t count, const double* gradient,
                     double* variable,
                     absl::Span<double* const> slots) const = 0;

  // Apply() for gradients that came for some rows only: row i of `gradients`,
  // which has rows.size() rows of `row_elements`, belongs to row rows[i] of the
  // variable and its slots. No row occurs twice, and all exist: whoever calls
  // sums the gradients of repeated rows first, before the rule squares them.
  //
  // Other rows keep their value and their slots: no momentum moves them, no
  // running mean of theirs decays, and weight decay leaves them alone, while
  // `step` counts on for all rows. Keras 3 differs: its gradient of such a row
  // is 0, so slots of all rows decay and all weights move. In exchange an
  // update costs what the rows of the batch cost, whatever the size of the
  // table.
  virtual void ApplyRows(int64_t step, int64_t row_elements,
                         absl::Span<const int64_t> rows, const float* gradients,
                         float* variable,
                         absl::Span<float* const> slots) const = 0;
  virtual void ApplyRows(int64_t step, int64_t row_elements,
                         absl::Span<const int64_t> rows,
                         const double* gradients, double* variable,
                         absl::Span<double* const> slots) const = 0;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_UPDATE_RULE_H_
