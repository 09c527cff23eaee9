#include "common/compute/variables/clipping_session.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/functions/gradient_clipping.h"
#include "common/compute/variables/holding_session.h"
#include "common/compute/variables/row_sums.h"
#include "common/compute/variables/update_kind.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"

namespace muster {
namespace {

// True if there is a row for each index. If not, the store returns the error.
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

// Sums each block in the gradient's own precision, which vectorizes, and the
// blocks in double, so that large gradients lose no precision.
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

class ClippingSession final : public HoldingSession {
 public:
  ClippingSession(std::unique_ptr<VariableSession> inner,
                  absl::Span<const VariableUse> uses)
      : HoldingSession(std::move(inner), uses, "global_clipnorm"),
        clipping_(ClippingOf(uses)) {}

  absl::Status BeginPart(uint64_t step_id, int part) override {
    scratch_used_ = 0;
    return HoldingSession::BeginPart(step_id, part);
  }

  // This session clips the mean of accumulated gradients itself.
  GradientAccumulator* accumulator() override { return nullptr; }

  // No gate: the host computes the norms and waits for the gradients.
  GatedSteps* UseGate(StepGate*) override { return nullptr; }

  absl::Status Update(int variable, UpdateKind kind, const Tensor& value,
                      const Tensor& indices) override;
  absl::Status Commit() override;

 private:
  // Sums rows that repeat, in place.
  void SumRows(Held* gradient);
  // Returns a tensor of this session for a clipped gradient.
  Tensor& Scratch(const TensorType& type);
  void ClipValues(double limit, Held* gradient);
  void Scale(double factor, Held* gradient);

  const std::vector<GradientClipping> clipping_;  // By variable.
  // Sums of squares, by norm_group.
  absl::flat_hash_map<int64_t, double> squares_;
  RowSums row_sums_;
  // Reused in later steps when no other tensor holds them.
  std::vector<Tensor> scratch_;
  size_t scratch_used_ = 0;
};

absl::Status ClippingSession::Update(int variable, UpdateKind kind,
                                     const Tensor& value,
                                     const Tensor& indices) {
  const GradientClipping& clipping = clipping_[variable];
  const bool is_float =
      value.dtype() == DType::kFloat32 || value.dtype() == DType::kFloat64;
  // An update that is not a float gradient goes to the store, which rejects
  // what is invalid.
  if (!IsGradient(kind) || !clipping.is_set() || !is_float) {
    return PassOn(variable, kind, value, indices);
  }
  Held gradient = AssignHeldCall(variable, kind, value, indices);
  GradientAccumulator* const accumulator = inner().accumulator();
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
    held().push_back(std::move(gradient));
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
  for (const Held& gradient : held()) {
    squares_[clipping_[gradient.variable].norm_group] +=
        SumOfSquares(gradient.value);
  }
  for (Held& gradient : held()) {
    const GradientClipping& clipping = clipping_[gradient.variable];
    const double norm = std::sqrt(squares_[clipping.norm_group]);
    const double limit = clipping.global_clipnorm;
    if (!(norm <= limit)) {
      Scale(std::isfinite(norm) ? limit / norm : std::nan(""), &gradient);
    }
    RETURN_IF_ERROR(HandOn(gradient));
  }
  const absl::Status status = inner().Commit();
  held().clear();
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
