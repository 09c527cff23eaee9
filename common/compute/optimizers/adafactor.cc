#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/functions/whole_update.h"
#include "common/compute/optimizers/argument_checks.h"
#include "common/compute/optimizers/learning_rate.h"
#include "common/compute/optimizers/optimizer_kind.h"
#include "common/compute/optimizers/optimizer_message.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/compute/optimizers/whole_rule.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/shape.h"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

constexpr absl::string_view kAdafactorRuleName = "adafactor";

// Returns the root of the mean square.
template <typename T>
T RootMeanSquare(int64_t count, const T* values) {
  double squares = 0;
  for (int64_t i = 0; i < count; ++i) {
    squares += static_cast<double>(values[i]) * values[i];
  }
  return static_cast<T>(std::sqrt(squares / static_cast<double>(count)));
}

class AdafactorMath {
 public:
  explicit AdafactorMath(const proto::Optimizer& optimizer)
      : adafactor_(optimizer.adafactor()),
        weight_decay_(optimizer.weight_decay()) {
    slots_ = {{.name = "r"}, {.name = "c"}, {.name = "velocity"}};
  }

  std::vector<SlotSpec> slots() const { return slots_; }

  void Bind(absl::string_view, const Shape& shape) {
    count_ = shape.element_count();
    const int rank = shape.rank();
    is_factored_ = rank >= 2;
    if (!is_factored_) {
      slots_ = {{.name = "velocity"}};
      return;
    }
    rows_ = shape.dim(rank - 2);
    columns_ = shape.dim(rank - 1);
    std::vector<int64_t> of_row(shape.dims().begin(), shape.dims().end());
    std::vector<int64_t> of_column = of_row;
    of_row.erase(of_row.end() - 1);
    of_column.erase(of_column.end() - 2);
    slots_[0].shape = Shape(of_row);
    slots_[1].shape = Shape(of_column);
  }

  template <typename T>
  void Apply(int64_t step, float learning_rate, const T* gradient, T* variable,
             absl::Span<T* const> slots) const {
    if (count_ == 0) return;
    const Numbers<T> numbers = At<T>(step, learning_rate);
    const T beta = numbers.beta;
    for (int64_t i = 0; i < count_; ++i) {
      variable[i] -= variable[i] * numbers.decay;
    }
    T* const velocity = slots[is_factored_ ? 2 : 0];
    if (is_factored_) {
      const int64_t matrix = rows_ * columns_;
      for (int64_t i = 0; i < count_ / matrix; ++i) {
        Factor(beta, gradient + i * matrix, slots[0] + i * rows_,
               slots[1] + i * columns_, velocity + i * matrix);
      }
    } else {
      for (int64_t i = 0; i < count_; ++i) {
        velocity[i] = beta * velocity[i] + (1 - beta) * Square(gradient[i]);
      }
    }
    std::vector<T> direction(count_);
    for (int64_t i = 0; i < count_; ++i) {
      direction[i] = gradient[i] / std::sqrt(velocity[i]);
    }
    const T size = std::max(static_cast<T>(adafactor_.epsilon_2()),
                            RootMeanSquare(count_, variable)) *
                   numbers.rate;
    const T limit =
        std::max(T{1}, RootMeanSquare(count_, direction.data()) /
                           static_cast<T>(adafactor_.clip_threshold()));
    for (int64_t i = 0; i < count_; ++i) {
      variable[i] -= size * (direction[i] / limit);
    }
  }

  template <typename T>
  UpdatePass PassAt(int64_t step, float learning_rate) const {
    const Numbers<T> numbers = At<T>(step, learning_rate);
    UpdatePass pass = {.function = kAdafactorRuleName,
                       .sees_whole_variable = true};
    pass.SetCoefficients(
        AdafactorCoefficients{.rate = numbers.rate,
                              .decay = numbers.decay,
                              .beta = numbers.beta,
                              .epsilon_1 = adafactor_.epsilon_1(),
                              .epsilon_2 = adafactor_.epsilon_2(),
                              .clip_threshold = adafactor_.clip_threshold(),
                              .rows = rows_,
                              .columns = columns_});
    return pass;
  }

 private:
  // Coefficients that are equal for all elements.
  template <typename T>
  struct Numbers {
    T rate;
    T decay;
    T beta;
  };

  template <typename T>
  Numbers<T> At(int64_t step, float learning_rate) const {
    const T rate = static_cast<T>(learning_rate);
    const T number = static_cast<T>(step + 1);
    return {.rate = std::min(rate, 1 / std::sqrt(number)),
            .decay = static_cast<T>(weight_decay_) * rate,
            .beta = 1 - std::pow(number,
                                 static_cast<T>(adafactor_.beta_2_decay()))};
  }

  template <typename T>
  T Square(T gradient) const {
    return gradient * gradient + static_cast<T>(adafactor_.epsilon_1());
  }

  // Updates the factors and the velocity of one matrix [rows_, columns_].
  template <typename T>
  void Factor(T beta, const T* gradient, T* row, T* column, T* velocity) const {
    std::vector<double> column_sums(columns_, 0);
    double mean_of_rows = 0;
    for (int64_t i = 0; i < rows_; ++i) {
      double row_sum = 0;
      for (int64_t j = 0; j < columns_; ++j) {
        const double square = Square(gradient[i * columns_ + j]);
        row_sum += square;
        column_sums[j] += square;
      }
      const T mean = static_cast<T>(row_sum / static_cast<double>(columns_));
      row[i] = beta * row[i] + (1 - beta) * mean;
      mean_of_rows += row[i];
    }
    for (int64_t j = 0; j < columns_; ++j) {
      const T mean =
          static_cast<T>(column_sums[j] / static_cast<double>(rows_));
      column[j] = beta * column[j] + (1 - beta) * mean;
    }
    const T mean = static_cast<T>(mean_of_rows / static_cast<double>(rows_));
    for (int64_t i = 0; i < rows_; ++i) {
      const T share = row[i] / mean;
      for (int64_t j = 0; j < columns_; ++j) {
        velocity[i * columns_ + j] = share * column[j];
      }
    }
  }

  proto::Optimizer::Adafactor adafactor_;
  double weight_decay_;
  std::vector<SlotSpec> slots_;
  // Properties of the bound variable.
  int64_t count_ = 0;
  bool is_factored_ = false;
  int64_t rows_ = 0;
  int64_t columns_ = 0;
};

absl::Status CheckPositive(absl::string_view name, double value) {
  if (std::isfinite(value) && value > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is ", value, "; expected a positive number"));
}

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeAdafactor(
    const proto::Optimizer& optimizer, LearningRate learning_rate) {
  const proto::Optimizer::Adafactor& adafactor = optimizer.adafactor();
  RETURN_IF_ERROR(
      CheckInRange("beta_2_decay", adafactor.beta_2_decay(), -1e3, 0));
  RETURN_IF_ERROR(CheckPositive("epsilon_1", adafactor.epsilon_1()));
  RETURN_IF_ERROR(CheckNotNegative("epsilon_2", adafactor.epsilon_2()));
  RETURN_IF_ERROR(CheckPositive("clip_threshold", adafactor.clip_threshold()));
  return std::make_unique<WholeRule<AdafactorMath>>(
      kAdafactorRuleName, std::move(learning_rate), AdafactorMath(optimizer));
}

}  // namespace

Optimizer Adafactor(const AdafactorOptions& options,
                    const OptimizerOptions& shared) {
  proto::Optimizer optimizer = WithOptions(shared);
  auto* const adafactor = optimizer.mutable_adafactor();
  SetLearningRate(options.learning_rate, adafactor, &optimizer);
  adafactor->set_beta_2_decay(options.beta_2_decay);
  adafactor->set_epsilon_1(options.epsilon_1);
  adafactor->set_epsilon_2(options.epsilon_2);
  adafactor->set_clip_threshold(options.clip_threshold);
  adafactor->set_relative_step(options.relative_step);
  return optimizer;
}

const OptimizerKind kAdafactorKind = {
    .rule_case = proto::Optimizer::kAdafactor,
    .rule_name = kAdafactorRuleName,
    .keras_class = "Adafactor",
    .defaults = [] { return Adafactor(); },
    .make_rule = MakeAdafactor,
};

}  // namespace muster
