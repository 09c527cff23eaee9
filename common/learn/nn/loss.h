#ifndef COMMON_LEARN_NN_LOSS_H_
#define COMMON_LEARN_NN_LOSS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"

namespace muster {

class ConfigVisitor;

// How the losses of examples become one number. Equivalent to: the `reduction`
// of keras.losses.
enum class Reduction {
  kSumOverBatchSize,  // Their mean.
  kSum,
  kNone,  // One number for each example; for custom training loops.
};

// The function that training minimizes: a function of labels and predictions
// that adds nodes to their graph. A value, cheap to copy.
//
//   Loss loss = SparseCategoricalCrossentropy({.from_logits = true});
//   Value mean = loss(labels, logits);
//
// A custom loss is a name and a function:
//
//   Loss log_cosh("log_cosh", [](Value y, Value x) { ... });
//
// Equivalent to: keras.losses.Loss.
class Loss {
 public:
  // The losses of single examples: [batch], or [batch, ...] where predictions
  // have more axes than one for the features.
  using PerExample = std::function<Value(Value y_true, Value y_pred)>;

  Loss() = default;  // None; false as a bool.
  // The loss of this name, which Compile() looks up: "mse", "huber",
  // "MeanSquaredError", "crossentropy", ... with Keras' defaults. Not for steps
  // custom training loops, which take functions such as MeanSquaredError().
  Loss(const char* name) : name_(name) {}  // NOLINT: {.loss = "mse"}.
  Loss(absl::string_view name, PerExample per_example,
       Reduction reduction = Reduction::kSumOverBatchSize);

  explicit operator bool() const {
    return is_name() || per_example_ != nullptr;
  }
  // True if this is a name that has not been looked up.
  bool is_name() const { return per_example_ == nullptr && !name_.empty(); }
  // Keras' name: "mean_squared_error".
  const std::string& name() const { return name_; }
  Reduction reduction() const { return reduction_; }

  // Weights broadcast against the losses of examples: usually [batch].
  //
  // A mask says which positions of the predictions are padding, as Masks does:
  // bool [batch, ...], usually [batch, time], and false there. Padding loses
  // nothing, and a mean is one over the other positions, whatever their weights
  // are; 0 where all is padding. Weights or a mask that belong to no graph are
  // none.
  //
  // Reported to the builder: a mask that is not bool, or has more axes than the
  // losses of examples.
  Value operator()(Value y_true, Value y_pred) const;
  Value operator()(Value y_true, Value y_pred, Value sample_weight) const;
  Value operator()(Value y_true, Value y_pred, Value sample_weight,
                   Value mask) const;

  // The loss, and over how many positions it is a mean: a float32 scalar, those
  // with an ignored label and padding left out. A loss that is not a mean has
  // no such number; the value then belongs to no graph. Losses that are not
  // reduced have the one of their mean, which is over all positions.
  struct Counted {
    Value loss;
    Value example_count;
    // True if the number is the same for each example of the batch.
    bool counts_all = true;
  };
  Counted WithCount(Value y_true, Value y_pred, Value sample_weight,
                    Value mask) const;

  // The losses of examples before weights and reduction.
  struct Examples {
    Value losses;
    // bool: false for examples that do not count: those with the ignored class,
    // whose losses are those of class 0, or without a loss
    // (CountingPositive()). Belongs to no graph if all count.
    Value has_label;
  };
  Examples OfExamples(Value y_true, Value y_pred) const;

  // The same loss, but examples with this label count for nothing.
  Loss IgnoringClass(int64_t ignored_class) const;

  // The same loss, but examples that lose nothing count for nothing.
  Loss CountingPositive() const;

  // The same loss, which remembers the options that it was made of: a struct
  // with a VisitConfig(). Only such losses can be written to files of Keras.
  template <typename Options>
  Loss WithOptions(Options options) const {
    Loss loss = *this;
    loss.visit_options_ =
        [options = std::move(options)](ConfigVisitor& visitor) mutable {
          options.VisitConfig(visitor);
        };
    return loss;
  }
  // Passes the options to a visitor, which must not change them. Empty unless
  // the loss remembers them.
  const std::function<void(ConfigVisitor&)>& visit_options() const {
    return visit_options_;
  }

 private:
  std::string name_;
  PerExample per_example_;
  Reduction reduction_ = Reduction::kSumOverBatchSize;
  std::optional<int64_t> ignored_class_;
  bool counts_positive_ = false;
  std::function<void(ConfigVisitor&)> visit_options_;
};

}  // namespace muster

#endif  // COMMON_LEARN_NN_LOSS_H_
