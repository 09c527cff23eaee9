#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/functions/update.h"
#include "common/compute/functions/whole_update.h"
#include "common/compute/optimizers/argument_checks.h"
#include "common/compute/optimizers/learning_rate.h"
#include "common/compute/optimizers/optimizer_kind.h"
#include "common/compute/optimizers/optimizer_message.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/compute/optimizers/whole_rule.h"
#include "common/core/base/multiversion.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/shape.h"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

constexpr absl::string_view kMuonRuleName = "muon";

// c += a b, with a [rows, inner] and b [inner, columns]. The sum over `inner`
// has a fixed order, so all machines compute the same bits.
template <typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void AddProduct(int64_t rows, int64_t inner,
                                                    int64_t columns, const T* a,
                                                    const T* b, T* c) {
  for (int64_t i = 0; i < rows; ++i) {
    T* __restrict out = c + i * columns;
    for (int64_t k = 0; k < inner; ++k) {
      const T factor = a[i * inner + k];
      const T* __restrict in = b + k * columns;
      for (int64_t j = 0; j < columns; ++j) out[j] += factor * in[j];
    }
  }
}

MUSTER_MULTIVERSION void MuonAddProductFloat(int64_t rows, int64_t inner,
                                             int64_t columns, const float* a,
                                             const float* b, float* c) {
  AddProduct(rows, inner, columns, a, b, c);
}
MUSTER_MULTIVERSION void MuonAddProductDouble(int64_t rows, int64_t inner,
                                              int64_t columns, const double* a,
                                              const double* b, double* c) {
  AddProduct(rows, inner, columns, a, b, c);
}

void AddProductOf(int64_t rows, int64_t inner, int64_t columns, const float* a,
                  const float* b, float* c) {
  MuonAddProductFloat(rows, inner, columns, a, b, c);
}
void AddProductOf(int64_t rows, int64_t inner, int64_t columns, const double* a,
                  const double* b, double* c) {
  MuonAddProductDouble(rows, inner, columns, a, b, c);
}

template <typename T>
std::vector<T> Transposed(int64_t rows, int64_t columns,
                          const std::vector<T>& matrix) {
  std::vector<T> transposed(matrix.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      transposed[j * rows + i] = matrix[i * columns + j];
    }
  }
  return transposed;
}

class MuonMath {
 public:
  MuonMath(const proto::Optimizer& optimizer, std::vector<std::regex> excluded)
      : muon_(optimizer.muon()),
        weight_decay_(optimizer.weight_decay()),
        excluded_(std::move(excluded)) {}

  std::vector<SlotSpec> slots() const {
    std::vector<SlotSpec> slots = {{.name = "momentum"}};
    if (has_adam_) slots.push_back({.name = "velocity"});
    return slots;
  }

  void Bind(absl::string_view name, const Shape& shape) {
    count_ = shape.element_count();
    has_adam_ = shape.rank() != 2 || IsExcluded(std::string(name));
    if (has_adam_) return;
    rows_ = shape.dim(0);
    columns_ = shape.dim(1);
  }

  template <typename T>
  void Apply(int64_t step, float learning_rate, const T* gradient, T* variable,
             absl::Span<T* const> slots) const {
    if (count_ == 0) return;
    const T rate = static_cast<T>(learning_rate);
    if (has_adam_) {
      ApplyAdam(AdamAt(step, rate), gradient, variable, slots[0], slots[1]);
    } else {
      ApplyToMatrix(rate, gradient, variable, slots[0]);
    }
  }

  template <typename T>
  UpdatePass PassAt(int64_t step, float learning_rate) const {
    const T rate = static_cast<T>(learning_rate);
    UpdatePass pass;
    if (has_adam_) {
      pass.function = "muon_adam";
      pass.SetCoefficients(AdamAt(step, rate));
      return pass;
    }
    pass.function = kMuonRuleName;
    pass.sees_whole_variable = true;
    pass.SetCoefficients(MuonCoefficients{
        .rate = rate * Scale<T>(),
        .decay = MatrixDecay(rate),
        .momentum = muon_.momentum(),
        .a = muon_.muon_a(),
        .b = muon_.muon_b(),
        .c = muon_.muon_c(),
        .rows = rows_,
        .columns = columns_,
        .iteration_count = static_cast<int32_t>(muon_.ns_steps()),
        .is_nesterov = muon_.nesterov() ? 1 : 0});
    return pass;
  }

 private:
  bool IsExcluded(const std::string& name) const {
    if (muon_.exclude_embeddings() &&
        absl::StrContains(absl::AsciiStrToLower(name), "embedding")) {
      return true;
    }
    return std::any_of(excluded_.begin(), excluded_.end(),
                       [&](const std::regex& excluded) {
                         return std::regex_search(name, excluded);
                       });
  }

  template <typename T>
  MuonAdamCoefficients<T> AdamAt(int64_t step, T rate) const {
    const auto remainder = [step](double beta) {
      return 1 - std::pow(static_cast<T>(beta), static_cast<T>(step + 1));
    };
    return {.decay = static_cast<T>(muon_.adam_weight_decay()) * rate,
            .size = rate * static_cast<T>(muon_.adam_lr_ratio()) *
                    std::sqrt(remainder(muon_.adam_beta_2())) /
                    remainder(muon_.adam_beta_1()),
            .one_minus_beta_1 = static_cast<T>(1 - muon_.adam_beta_1()),
            .one_minus_beta_2 = static_cast<T>(1 - muon_.adam_beta_2()),
            .epsilon = static_cast<T>(muon_.epsilon())};
  }

  template <typename T>
  void ApplyAdam(const MuonAdamCoefficients<T>& coefficients, const T* gradient,
                 T* variable, T* momentum, T* velocity) const {
    for (int64_t i = 0; i < count_; ++i) {
      T slots[] = {momentum[i], velocity[i]};
      variable[i] =
          MuonAdamUpdate::Apply(coefficients, gradient[i], variable[i], slots);
      momentum[i] = slots[0];
      velocity[i] = slots[1];
    }
  }

  template <typename T>
  T MatrixDecay(T rate) const {
    return static_cast<T>(weight_decay_) * rate;
  }

  // The scale depends on the shape only.
  template <typename T>
  T Scale() const {
    if (muon_.rms_rate() <= 0) return T{1};
    return std::sqrt(static_cast<T>(std::max(rows_, columns_))) *
           static_cast<T>(muon_.rms_rate());
  }

  template <typename T>
  void ApplyToMatrix(T rate, const T* gradient, T* variable,
                     T* momentum) const {
    const T decay = MatrixDecay(rate);
    for (int64_t i = 0; i < count_; ++i) variable[i] -= variable[i] * decay;
    const T factor = static_cast<T>(muon_.momentum());
    const T less_one = static_cast<T>(muon_.momentum() - 1);
    std::vector<T> update(count_);
    for (int64_t i = 0; i < count_; ++i) {
      momentum[i] += gradient[i] + momentum[i] * less_one;
      update[i] =
          muon_.nesterov() ? gradient[i] + factor * momentum[i] : momentum[i];
    }
    if (rows_ > columns_) {
      update = Transposed(rows_, columns_, update);
      Orthogonalize(columns_, rows_, &update);
      update = Transposed(columns_, rows_, update);
    } else {
      Orthogonalize(rows_, columns_, &update);
    }
    const T scale = Scale<T>();
    for (int64_t i = 0; i < count_; ++i) {
      variable[i] -= rate * update[i] * scale;
    }
  }

  // Requires that `x` has at most as many rows as columns.
  template <typename T>
  void Orthogonalize(int64_t rows, int64_t columns, std::vector<T>* x) const {
    double squares = 0;
    for (const T value : *x) squares += static_cast<double>(value) * value;
    const T norm =
        static_cast<T>(std::sqrt(squares)) + static_cast<T>(kMuonNormEpsilon);
    for (T& value : *x) value /= norm;
    const T a = static_cast<T>(muon_.muon_a());
    const T b = static_cast<T>(muon_.muon_b());
    const T c = static_cast<T>(muon_.muon_c());
    std::vector<T> square(rows * rows);
    std::vector<T> polynomial(rows * rows);
    std::vector<T> next(x->size());
    for (int64_t step = 0; step < muon_.ns_steps(); ++step) {
      std::fill(square.begin(), square.end(), T{0});
      AddProductOf(rows, columns, rows, x->data(),
                   Transposed(rows, columns, *x).data(), square.data());
      std::fill(polynomial.begin(), polynomial.end(), T{0});
      AddProductOf(rows, rows, rows, square.data(), square.data(),
                   polynomial.data());
      for (size_t i = 0; i < square.size(); ++i) {
        polynomial[i] = b * square[i] + c * polynomial[i];
      }
      for (size_t i = 0; i < next.size(); ++i) next[i] = a * (*x)[i];
      AddProductOf(rows, rows, columns, polynomial.data(), x->data(),
                   next.data());
      x->swap(next);
    }
  }

  proto::Optimizer::Muon muon_;
  double weight_decay_;
  std::vector<std::regex> excluded_;
  // Properties of the bound variable.
  int64_t count_ = 0;
  bool has_adam_ = true;
  int64_t rows_ = 0;
  int64_t columns_ = 0;
};

absl::StatusOr<std::vector<std::regex>> ExcludedBy(
    const proto::Optimizer::Muon& muon) {
  std::vector<std::regex> excluded;
  for (const std::string& pattern : muon.exclude_layers()) {
    try {
      excluded.emplace_back(pattern);
    } catch (const std::regex_error& error) {
      return absl::InvalidArgumentError(absl::StrCat(
          "exclude_layers has \"", pattern,
          "\", which is not a valid regular expression: ", error.what()));
    }
  }
  return excluded;
}

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeMuon(
    const proto::Optimizer& optimizer, LearningRate learning_rate) {
  const proto::Optimizer::Muon& muon = optimizer.muon();
  // With a beta of 1, the bias correction would divide by 0.
  constexpr double kBetaMax = 1 - 1e-7;
  constexpr double kStepCountMax = 1000;
  RETURN_IF_ERROR(CheckInRange("adam_beta_1", muon.adam_beta_1(), 0, kBetaMax));
  RETURN_IF_ERROR(CheckInRange("adam_beta_2", muon.adam_beta_2(), 0, kBetaMax));
  RETURN_IF_ERROR(
      CheckNotNegative("adam_weight_decay", muon.adam_weight_decay()));
  RETURN_IF_ERROR(CheckNotNegative("epsilon", muon.epsilon()));
  RETURN_IF_ERROR(CheckNotNegative("adam_lr_ratio", muon.adam_lr_ratio()));
  RETURN_IF_ERROR(CheckInRange("momentum", muon.momentum(), 0, 1));
  RETURN_IF_ERROR(CheckNotNegative("rms_rate", muon.rms_rate()));
  RETURN_IF_ERROR(CheckInRange("ns_steps", static_cast<double>(muon.ns_steps()),
                               0, kStepCountMax));
  ASSIGN_OR_RETURN(std::vector<std::regex> excluded, ExcludedBy(muon));
  return std::make_unique<WholeRule<MuonMath>>(
      kMuonRuleName, std::move(learning_rate),
      MuonMath(optimizer, std::move(excluded)));
}

}  // namespace

Optimizer Muon(const MuonOptions& options, const OptimizerOptions& shared) {
  proto::Optimizer optimizer = WithOptions(shared);
  auto* const muon = optimizer.mutable_muon();
  SetLearningRate(options.learning_rate, muon, &optimizer);
  muon->set_adam_beta_1(options.adam_beta_1);
  muon->set_adam_beta_2(options.adam_beta_2);
  muon->set_adam_weight_decay(options.adam_weight_decay);
  muon->set_epsilon(options.epsilon);
  for (const std::string& pattern : options.exclude_layers) {
    muon->add_exclude_layers(pattern);
  }
  muon->set_exclude_embeddings(options.exclude_embeddings);
  muon->set_muon_a(options.muon_a);
  muon->set_muon_b(options.muon_b);
  muon->set_muon_c(options.muon_c);
  muon->set_adam_lr_ratio(options.adam_lr_ratio);
  muon->set_momentum(options.momentum);
  muon->set_ns_steps(options.ns_steps);
  muon->set_nesterov(options.nesterov);
  muon->set_rms_rate(options.rms_rate);
  return optimizer;
}

const OptimizerKind kMuonKind = {
    .rule_case = proto::Optimizer::kMuon,
    .rule_name = kMuonRuleName,
    .keras_class = "Muon",
    .defaults = [] { return Muon({}, {.weight_decay = 0.004}); },
    .make_rule = MakeMuon,
};

}  // namespace muster
