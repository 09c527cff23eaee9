#include "common/compute/variables/clipping_session.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/compute/ops/gradient_clipping.h"
#include "common/compute/variables/row_sums.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"

namespace muster {
namespace {

bool IsGradient(UpdateKind kind) {
  return kind == UpdateKind::kApplyGradient ||
         kind == UpdateKind::kApplySparseGradient;
}

// True if there is a row for each index; if not, the store says so.
bool HasRows(const Tensor& value, const Tensor& indices) {
  const absl::Span<const int64_t> dims = value.shape().dims();
  const absl::Span<const int64_t> outer = indices.shape().dims();
  const bool is_index =
      indices.dtype() == DType::kInt32 || indices.dtype() == DType::kInt64;
  return is_index && dims.size() >= outer.size() &&
         std::equal(outer.begin(), outer.end(), dims.begin());
}

// Calls visit.operator()<T>() for the types that gradients have.
template <typename Visitor>
void VisitGradientType(DType dtype, Visitor&& visitor) {
  if (dtype == DType::kFloat64) {
    visitor.template operator()<double>();
  } else {
    visitor.template operator()<float>();
  }
}

// Each block in the gradient's own precision, which vectorizes; blocks in
// double, so that large gradients lose nothing.
template <typename T>
double SumOfSquares(absl::Span<const T> values) {
  constexpr size_t kLanes = 16;
  constexpr size_t kBlock = 4096;
  double total = 0;
  for (size_t begin = 0; begin < values.size(); begin += kBlock) {
    const size_t end = std::min(values.size(), begin + kBlock);
    T sums[kLanes] = {};
    size_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      for (size_t lane = 0; lane < kLanes; ++lane) {
        sums[lane] += values[i + lane] * values[i + lane];
      }
    }
    for (; i < end; ++i) sums[0] += values[i] * values[i];
    for (const T sum : sums) total += static_cast<double>(sum);
  }
  return total;
}

double SumOfSquares(const Tensor& tensor) {
  double sum = 0;
  VisitGradientType(tensor.dtype(), [&]<typename T>() {
    sum = SumOfSquares<T>(tensor.flat<T>());
  });
  return sum;
}

class ClippingSession final : public VariableSession {
 public:
  ClippingSession(std::unique_ptr<VariableSession> inner,
                  absl::Span<const VariableUse> uses);

  absl::Status BeginPart(uint64_t step_id, int part) override {
    held_.clear();
    inner_calls_.clear();
    inner_call_count_ = 0;
    scratch_used_ = 0;
    return inner_->BeginPart(step_id, part);
  }

  absl::StatusOr<Tensor> Read(int variable) override {
    RETURN_IF_ERROR(CheckNotHeld(variable));
    return inner_->Read(variable);
  }

  absl::Status Gather(int variable, const Tensor& indices,
                      Tensor* rows) override {
    RETURN_IF_ERROR(CheckNotHeld(variable));
    inner_calls_.push_back(inner_call_count_++);
    return inner_->Gather(variable, indices, rows);
  }

  absl::Status SetLossDenominator(double weight) override {
    return inner_->SetLossDenominator(weight);
  }
  bool needs_loss_denominator() const override {
    return inner_->needs_loss_denominator();
  }

  absl::Status DataError(int call) override {
    const bool is_known = call < static_cast<int>(inner_calls_.size());
    return is_known && inner_calls_[call] >= 0
               ? inner_->DataError(inner_calls_[call])
               : absl::OkStatus();
  }

  // The mean of accumulated gradients is clipped here.
  GradientAccumulator* accumulator() override { return nullptr; }

  // The host computes the norms, and waits for the gradients.
  GatedSteps* UseGate(StepGate*) override { return nullptr; }

  absl::Status Update(int variable, UpdateKind kind, const Tensor& value,
                      const Tensor& indices) override;
  absl::Status Commit() override;

 private:
  static constexpr int kNone = -1;

  struct Variable {
    std::string name;
    GradientClipping clipping;
  };
  struct Held {
    int variable;
    UpdateKind kind;
    Tensor value;
    Tensor indices;
    size_t call;  // In inner_calls_.
    // The mean of accumulated gradients.
    bool is_mean = false;
  };

  absl::Status CheckNotHeld(int variable) const;
  // Sums rows that repeat, in place.
  void SumRows(Held* gradient);
  // A tensor of our own to clip into.
  Tensor& Scratch(const TensorType& type);
  void ClipValues(double limit, Held* gradient);
  void Scale(double factor, Held* gradient);
  absl::Status HandOn(const Held& gradient) {
    if (gradient.is_mean) {
      return inner_->accumulator()->ApplyMean(gradient.variable,
                                              gradient.value);
    }
    inner_calls_[gradient.call] = inner_call_count_++;
    return inner_->Update(gradient.variable, gradient.kind, gradient.value,
                          gradient.indices);
  }

  const std::unique_ptr<VariableSession> inner_;
  std::vector<Variable> variables_;
  std::vector<Held> held_;  // For the global norm.
  // By Gather() and Update() since BeginPart(): the number of the call of
  // inner_, or kNone.
  std::vector<int> inner_calls_;
  int inner_call_count_ = 0;
  // Sums of squares, by norm_group.
  absl::flat_hash_map<int64_t, double> squares_;
  RowSums row_sums_;
  // Used again from step to step, where no tensor holds them any more.
  std::vector<Tensor> scratch_;
  size_t scratch_used_ = 0;
};

ClippingSession::ClippingSession(std::unique_ptr<VariableSession> inner,
                                 absl::Span<const VariableUse> uses)
    : inner_(std::move(inner)) {
  const std::vector<GradientClipping> clipping = ClippingOf(uses);
  for (size_t i = 0; i < uses.size(); ++i) {
    variables_.push_back({uses[i].name, clipping[i]});
  }
}

absl::Status ClippingSession::CheckNotHeld(int variable) const {
  const bool is_held = std::any_of(
      held_.begin(), held_.end(),
      [&](const Held& gradient) { return gradient.variable == variable; });
  if (!is_held) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("variable \"", variables_[variable].name,
                   "\": the step reads it after applying its gradient; with "
                   "global_clipnorm gradients are applied when the step ends"));
}

absl::Status ClippingSession::Update(int variable, UpdateKind kind,
                                     const Tensor& value,
                                     const Tensor& indices) {
  const GradientClipping& clipping = variables_[variable].clipping;
  const bool is_float =
      value.dtype() == DType::kFloat32 || value.dtype() == DType::kFloat64;
  // What is no gradient after all is for the store to refuse.
  if (!IsGradient(kind) || !clipping.is_set() || !is_float) {
    inner_calls_.push_back(inner_call_count_++);
    return inner_->Update(variable, kind, value, indices);
  }
  Held gradient{variable, kind, value, indices, inner_calls_.size()};
  inner_calls_.push_back(kNone);
  GradientAccumulator* const accumulator = inner_->accumulator();
  if (accumulator != nullptr && accumulator->accumulates_gradients(variable)) {
    ASSIGN_OR_RETURN(gradient.value,
                     accumulator->Accumulate(variable, kind, value, indices));
    if (!gradient.value.IsValid()) return absl::OkStatus();
    gradient.is_mean = true;
  } else if (kind == UpdateKind::kApplySparseGradient &&
             HasRows(value, indices)) {
    SumRows(&gradient);
  }
  if (clipping.global_clipnorm > 0) {
    held_.push_back(std::move(gradient));
    return absl::OkStatus();
  }
  if (clipping.clipvalue > 0) {
    ClipValues(clipping.clipvalue, &gradient);
  } else {
    const double norm = std::sqrt(SumOfSquares(gradient.value));
    if (!(norm <= clipping.clipnorm)) {
      Scale(clipping.clipnorm / norm, &gradient);
    }
  }
  return HandOn(gradient);
}

absl::Status ClippingSession::Commit() {
  squares_.clear();
  for (const Held& gradient : held_) {
    squares_[variables_[gradient.variable].clipping.norm_group] +=
        SumOfSquares(gradient.value);
  }
  for (Held& gradient : held_) {
    const GradientClipping& clipping = variables_[gradient.variable].clipping;
    const double norm = std::sqrt(squares_[clipping.norm_group]);
    const double limit = clipping.global_clipnorm;
    if (!(norm <= limit)) {
      Scale(std::isfinite(norm) ? limit / norm : std::nan(""), &gradient);
    }
    RETURN_IF_ERROR(HandOn(gradient));
  }
  const absl::Status status = inner_->Commit();
  held_.clear();
  return status;
}

void ClippingSession::SumRows(Held* gradient) {
  row_sums_.Compute(gradient->indices, gradient->value);
  const auto row_count = static_cast<int64_t>(row_sums_.rows().size());
  if (row_count == gradient->indices.element_count()) return;
  Shape shape({row_count});
  for (int axis = gradient->indices.shape().rank();
       axis < gradient->value.shape().rank(); ++axis) {
    shape.AddDim(gradient->value.shape().dim(axis));
  }
  Tensor sums(gradient->value.dtype(), shape);
  Tensor rows(DType::kInt64, {row_count});
  std::copy(row_sums_.rows().begin(), row_sums_.rows().end(),
            rows.mutable_flat<int64_t>().begin());
  VisitGradientType(sums.dtype(), [&]<typename T>() {
    std::copy_n(row_sums_.values<T>(), sums.element_count(),
                sums.mutable_flat<T>().begin());
  });
  gradient->value = std::move(sums);
  gradient->indices = std::move(rows);
}

Tensor& ClippingSession::Scratch(const TensorType& type) {
  if (scratch_used_ == scratch_.size()) scratch_.emplace_back();
  Tensor& scratch = scratch_[scratch_used_++];
  const bool fits =
      scratch.IsValid() && scratch.type() == type && scratch.IsSoleOwner();
  if (!fits) scratch = Tensor(type.dtype, type.shape);
  return scratch;
}

void ClippingSession::ClipValues(double limit, Held* gradient) {
  Tensor& clipped = Scratch(gradient->value.type());
  VisitGradientType(clipped.dtype(), [&]<typename T>() {
    const absl::Span<const T> from = gradient->value.flat<T>();
    const absl::Span<T> to = clipped.mutable_flat<T>();
    const T bound = static_cast<T>(limit);
    for (size_t i = 0; i < from.size(); ++i) {
      to[i] = from[i] > bound ? bound : from[i] < -bound ? -bound : from[i];
    }
  });
  gradient->value = clipped;
}

void ClippingSession::Scale(double factor, Held* gradient) {
  Tensor& scaled = Scratch(gradient->value.type());
  VisitGradientType(scaled.dtype(), [&]<typename T>() {
    const absl::Span<const T> from = gradient->value.flat<T>();
    const absl::Span<T> to = scaled.mutable_flat<T>();
    for (size_t i = 0; i < from.size(); ++i) {
      to[i] = from[i] * static_cast<T>(factor);
    }
  });
  gradient->value = scaled;
}

}  // namespace

std::vector<GradientClipping> ClippingOf(absl::Span<const VariableUse> uses) {
  std::vector<GradientClipping> clipping(uses.size());
  absl::flat_hash_map<int64_t, double> limits;  // By norm_group.
  for (size_t i = 0; i < uses.size(); ++i) {
    for (const VariableUse::PlannedUpdate& update : uses[i].updates) {
      if (!IsGradient(update.kind)) continue;
      clipping[i] = update.clipping;
      double& limit = limits[update.clipping.norm_group];
      limit = std::max(limit, update.clipping.global_clipnorm);
    }
  }
  for (GradientClipping& one : clipping) {
    if (one.global_clipnorm > 0) {
      one.global_clipnorm = limits[one.norm_group];
    } else {
      one.norm_group = 0;
    }
  }
  return clipping;
}

std::unique_ptr<VariableSession> WithClipping(
    std::unique_ptr<VariableSession> inner,
    absl::Span<const VariableUse> uses) {
  bool clips = false;
  for (const VariableUse& use : uses) {
    for (const VariableUse::PlannedUpdate& update : use.updates) {
      clips |= IsGradient(update.kind) && update.clipping.is_set();
    }
  }
  if (!clips) return inner;
  return std::make_unique<ClippingSession>(std::move(inner), uses);
}

}  // namespace muster
