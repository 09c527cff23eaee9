#include "common/compute/variables/local_variable.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/compute/optimizers/staged_rule.h"
#include "common/compute/variables/constraint.h"
#include "common/compute/variables/initial_value.h"
#include "common/compute/variables/optimizer_slots.h"
#include "common/compute/variables/update_checks.h"
#include "common/compute/variables/update_kind.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor_codec.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

enum class Arithmetic { kReplace, kAdd, kSubtract };

template <typename T>
void Change(Arithmetic arithmetic, int64_t count, const T* operand, T* target) {
  if constexpr (std::is_same_v<T, bool>) {
    std::copy(operand, operand + count, target);  // A bool can only be set.
  } else if constexpr (!std::is_arithmetic_v<T>) {
    for (int64_t i = 0; i < count; ++i) {
      const float a = static_cast<float>(target[i]);
      const float b = static_cast<float>(operand[i]);
      target[i] = T(arithmetic == Arithmetic::kReplace ? b
                    : arithmetic == Arithmetic::kAdd   ? a + b
                                                       : a - b);
    }
  } else if (arithmetic == Arithmetic::kReplace) {
    std::copy(operand, operand + count, target);
  } else if constexpr (std::is_integral_v<T>) {
    // Integers wrap around. In C++ only unsigned integers may overflow.
    using Bits = std::make_unsigned_t<T>;
    for (int64_t i = 0; i < count; ++i) {
      const Bits a = static_cast<Bits>(target[i]);
      const Bits b = static_cast<Bits>(operand[i]);
      target[i] = static_cast<T>(
          static_cast<Bits>(arithmetic == Arithmetic::kAdd ? a + b : a - b));
    }
  } else if (arithmetic == Arithmetic::kAdd) {
    for (int64_t i = 0; i < count; ++i) target[i] += operand[i];
  } else {
    for (int64_t i = 0; i < count; ++i) target[i] -= operand[i];
  }
}

Arithmetic ArithmeticOf(UpdateKind kind) {
  switch (kind) {
    case UpdateKind::kAssignAdd:
    case UpdateKind::kScatterAdd:
      return Arithmetic::kAdd;
    case UpdateKind::kAssignSub:
    case UpdateKind::kScatterSub:
      return Arithmetic::kSubtract;
    default:
      return Arithmetic::kReplace;
  }
}

// Calls visit(position, index) for each index.
template <typename Visit>
void ForEachIndex(const Tensor& indices, Visit visit) {
  const int64_t count = indices.element_count();
  if (indices.dtype() == DType::kInt32) {
    const int32_t* const flat = indices.flat<int32_t>().data();
    for (int64_t i = 0; i < count; ++i) visit(i, int64_t{flat[i]});
  } else {
    const int64_t* const flat = indices.flat<int64_t>().data();
    for (int64_t i = 0; i < count; ++i) visit(i, flat[i]);
  }
}

// Applies an update without the optimizer. The caller has checked types and
// indices.
void ChangeByValue(UpdateKind kind, const Tensor& value, const Tensor& indices,
                   Tensor* variable) {
  const Arithmetic arithmetic = ArithmeticOf(kind);
  VisitNumber(variable->dtype(), [&]<typename T>() {
    const T* const operand = value.flat<T>().data();
    T* const target = variable->mutable_flat<T>().data();
    if (!TakesIndices(kind)) {
      Change(arithmetic, value.element_count(), operand, target);
      return;
    }
    const int64_t row_elements =
        variable->shape().ElementCountInRange(1, variable->shape().rank());
    ForEachIndex(indices, [&](int64_t position, int64_t index) {
      Change(arithmetic, row_elements, operand + position * row_elements,
             target + index * row_elements);
    });
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalVariable>> LocalVariable::Create(
    const proto::VariableSpec& spec) {
  RETURN_IF_ERROR(ValidateVariableSpec(spec));
  ASSIGN_OR_RETURN(const Shape shape, DecodeShape(spec.shape(), false));
  Tensor value;
  RETURN_IF_ERROR(
      FillInitialValue(spec, 0, shape.rank() == 0 ? 1 : shape.dim(0), &value));
  TensorType type = value.type();
  return std::unique_ptr<LocalVariable>(
      new LocalVariable(std::make_unique<const proto::VariableSpec>(spec),
                        std::move(type), std::move(value)));
}

LocalVariable::LocalVariable(std::unique_ptr<const proto::VariableSpec> spec,
                             TensorType type, Tensor value)
    : spec_(std::move(spec)),
      type_(std::move(type)),
      value_(std::move(value)),
      own_{.count = type_.shape.element_count()} {}

LocalVariable::~LocalVariable() = default;

int64_t LocalVariable::row_count() const { return type_.shape.dim(0); }

int64_t LocalVariable::row_elements() const {
  return type_.shape.ElementCountInRange(1, type_.shape.rank());
}

absl::Status LocalVariable::Error(absl::string_view message) const {
  return absl::InvalidArgumentError(
      absl::StrCat("variable \"", spec_->name(), "\": ", message));
}

Tensor LocalVariable::Read() const {
  absl::ReaderMutexLock lock(&mutex_);
  return value_;
}

absl::Status LocalVariable::Assign(const Tensor& value) {
  return Update(UpdateKind::kAssign, value, Tensor(), nullptr, nullptr);
}

absl::Status LocalVariable::CheckIndices(const Tensor& indices) const {
  const uint64_t rows = static_cast<uint64_t>(row_count());
  int64_t bad_position = -1;
  int64_t bad_index = 0;
  ForEachIndex(indices, [&](int64_t position, int64_t index) {
    if (static_cast<uint64_t>(index) >= rows && bad_position < 0) {
      bad_position = position;
      bad_index = index;
    }
  });
  if (bad_position < 0) return absl::OkStatus();
  return IndexOutOfRange({spec_->name(), type_}, bad_index, bad_position);
}

absl::Status LocalVariable::Gather(const Tensor& indices, Tensor* rows) const {
  RETURN_IF_ERROR(CheckIndexType({spec_->name(), type_}, indices.dtype()));
  RETURN_IF_ERROR(CheckIndices(indices));
  if (!rows->IsValid() || rows->dtype() != type_.dtype ||
      !HasShapeOfRows(type_, indices.shape(), rows->shape())) {
    *rows = Tensor(type_.dtype, ShapeOfRows(type_, indices.shape()));
  }
  const size_t row_bytes = row_elements() * SizeOf(type_.dtype);
  if (row_bytes == 0) return absl::OkStatus();
  uint8_t* const out = rows->mutable_raw_data();
  absl::ReaderMutexLock lock(&mutex_);
  const uint8_t* const in = value_.raw_data();
  ForEachIndex(indices, [&](int64_t position, int64_t index) {
    std::memcpy(out + position * row_bytes, in + index * row_bytes, row_bytes);
  });
  return absl::OkStatus();
}

void LocalVariable::MakeWritable(bool keep_content) {
  if (value_.IsSoleOwner()) return;
  if (!spare_.IsSoleOwner()) spare_ = Tensor(type_.dtype, type_.shape);
  if (keep_content && value_.size_bytes() > 0) {
    std::memcpy(spare_.mutable_raw_data(), value_.raw_data(),
                value_.size_bytes());
  }
  std::swap(value_, spare_);
}

absl::Status LocalVariable::MakeSlots(
    const std::shared_ptr<const UpdateRule>& rule) {
  if (slots_rule_ == rule) return absl::OkStatus();
  std::shared_ptr<const UpdateRule> own_rule =
      UpdateRuleFor(rule, spec_->name(), type_.shape);
  RETURN_IF_ERROR(CheckRule(*own_rule));
  if (own_.count > 0 || !own_.is_partial) {
    const TensorType updated =
        own_.is_partial ? TensorType{type_.dtype, {own_.count}} : type_;
    RETURN_IF_ERROR(own_rule->Prepare(updated, Place()));
    RETURN_IF_ERROR(PrepareConstraint(spec_->constraint(), type_, Place()));
  }
  RETURN_IF_ERROR(CheckSlotTypes(*own_rule, spec_->name(), type_, slots_));
  const Tensor* const variable = &value_;
  const Own own = own_;
  ArrangeSlots(*own_rule, &slots_, [&](const SlotSpec& slot) {
    return own.MakeSlot(slot, *variable);
  });
  for (size_t i = 0; i < own_rule->slots().size(); ++i) {
    slots_[i].is_share = own.IsShare(slots_[i].name);
  }
  slots_rule_ = rule;
  own_rule_ = std::move(own_rule);
  return absl::OkStatus();
}

bool LocalVariable::Own::IsShare(absl::string_view slot) const {
  return is_partial &&
         !(has_whole_accumulator && slot == kGradientAccumulatorSlot);
}

Tensor LocalVariable::Own::Of(const Tensor& whole) const {
  Tensor part(whole.dtype(), {count});
  if (part.size_bytes() > 0) {
    std::memcpy(part.mutable_raw_data(),
                whole.raw_data() + begin * SizeOf(whole.dtype()),
                part.size_bytes());
  }
  return part;
}

Tensor LocalVariable::Own::MakeSlot(const SlotSpec& slot,
                                    const Tensor& variable) const {
  if (slot.starts_as_variable) {
    return IsShare(slot.name) ? Of(variable) : variable.Clone();
  }
  const Shape shape = IsShare(slot.name)
                          ? Shape({count})
                          : SlotType(slot, variable.type()).shape;
  return Tensor::Full(variable.dtype(), shape, slot.initial_value);
}

absl::Status LocalVariable::Divide(ElementShares shares) {
  const bool fits = shares.is_divided() && shares.rank >= 0 &&
                    shares.rank < static_cast<int>(shares.ends.size()) &&
                    std::is_sorted(shares.ends.begin(), shares.ends.end()) &&
                    shares.ends.front() >= 0 &&
                    shares.ends.back() == type_.shape.element_count();
  if (!fits) return Error("shares of another variable divide it");
  absl::MutexLock lock(&mutex_);
  if (shares_ == shares) return absl::OkStatus();
  if (shares_.is_divided()) {
    return absl::FailedPreconditionError(
        absl::StrCat("variable \"", spec_->name(),
                     "\": its elements are divided among the ranks already"));
  }
  const Own own = {
      .begin = shares.BeginOf(shares.rank),
      .count = shares.CountOf(shares.rank),
      .is_partial = shares.CountOf(shares.rank) != type_.shape.element_count(),
      .has_whole_accumulator = shares.has_whole_accumulator};
  if (spec_->has_constraint() && own.is_partial && own.count > 0) {
    return Error("it has a constraint, which needs all of its elements");
  }
  own_ = own;
  shares_ = std::move(shares);
  slots_rule_ = nullptr;
  return ReduceToShare(&slots_);
}

ElementShares LocalVariable::shares() const {
  absl::ReaderMutexLock lock(&mutex_);
  return shares_;
}

absl::Status LocalVariable::ReduceToShare(std::vector<Slot>* slots) const {
  for (Slot& slot : *slots) {
    if (slot.is_share) {
      const bool is_own =
          own_.IsShare(slot.name) && slot.value.shape() == Shape({own_.count});
      if (is_own) continue;
      return Error(absl::StrCat("slot \"", slot.name, "\" covers ",
                                slot.value.element_count(),
                                " elements; this rank has ", own_.count));
    }
    if (!own_.IsShare(slot.name)) continue;
    if (own_.count == 0) {
      // The slots of rules for whole variables have any shape.
      slot = {slot.name, Tensor(type_.dtype, {int64_t{0}}), true};
    } else if (slot.value.shape() == type_.shape) {
      slot = {slot.name, own_.Of(slot.value), true};
    }
  }
  return absl::OkStatus();
}

absl::Status LocalVariable::CheckRule(const UpdateRule& rule) const {
  const bool divides = own_.is_partial && own_.count > 0;
  if (!divides || !rule.needs_whole_variables()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "variable \"", spec_->name(), "\": ", rule.name(),
      " updates whole variables, and this rank has a part of the elements; set "
      "the optimizer before the first step"));
}

absl::Status LocalVariable::CheckNoRows(UpdateKind kind) const {
  if (!shares_.is_divided() || kind != UpdateKind::kApplySparseGradient) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError(absl::StrCat(
      "variable \"", spec_->name(),
      "\": this step has a gradient of rows, and the first step that trained "
      "the variable had none; with sharded optimizer state all steps must "
      "update it in the same way"));
}

absl::Status LocalVariable::AssignElements(
    absl::Span<const ElementValues> values) {
  const int64_t count = type_.shape.element_count();
  for (const ElementValues& part : values) {
    if (part.begin >= 0 && part.count >= 0 &&
        part.begin <= count - part.count) {
      continue;
    }
    return Error(absl::StrCat("it has ", count, " elements; there are no ",
                              part.count, " from element ", part.begin));
  }
  const size_t element_bytes = SizeOf(type_.dtype);
  absl::MutexLock lock(&mutex_);
  MakeWritable(/*keep_content=*/true);
  for (const ElementValues& part : values) {
    if (part.count == 0) continue;
    std::memcpy(value_.mutable_raw_data() + part.begin * element_bytes,
                part.data, part.count * element_bytes);
  }
  return absl::OkStatus();
}

void LocalVariable::AddOtherElements(const Tensor& gradient,
                                     Tensor* sum) const {
  const Own own = own_;
  VisitNumber(type_.dtype, [&]<typename T>() {
    const T* const from = gradient.flat<T>().data();
    T* const to = sum->mutable_flat<T>().data();
    const int64_t end = own.begin + own.count;
    Change(Arithmetic::kAdd, own.begin, from, to);
    Change(Arithmetic::kAdd, gradient.element_count() - end, from + end,
           to + end);
  });
}

template <typename T>
void LocalVariable::SlotPointers(T** pointers) {
  const size_t count = own_rule_->slots().size();
  MUSTER_CHECK(count <= UpdateRule::kSlotCountMax);
  for (size_t i = 0; i < count; ++i) {
    Tensor& slot = slots_[i].value;
    if (!slot.IsSoleOwner()) slot = slot.Clone();
    pointers[i] = slot.mutable_flat<T>().data();
    // The whole accumulator of a divided variable.
    if (!slots_[i].is_share) pointers[i] += own_.begin;
  }
}

template <typename T>
void LocalVariable::ApplyGradient(const UpdateRule& rule,
                                  const Tensor& gradient) {
  T* slots[UpdateRule::kSlotCountMax];
  SlotPointers(slots);
  rule.Apply(update_count_, own_.count, gradient.flat<T>().data() + own_.begin,
             value_.mutable_flat<T>().data() + own_.begin,
             absl::Span<T* const>(slots, rule.slots().size()));
}

template <typename T>
void LocalVariable::ApplySparseGradient(const UpdateRule& rule,
                                        const RowSums& row_sums) {
  T* slots[UpdateRule::kSlotCountMax];
  SlotPointers(slots);
  const absl::Span<T* const> all_slots(slots, rule.slots().size());
  T* const variable = value_.mutable_flat<T>().data();
  rule.ApplyRows(update_count_, row_elements(), row_sums.rows(),
                 row_sums.values<T>(), variable, all_slots);
  if (rule.ChangesAllRows(update_count_)) {
    rule.FinishRows(update_count_, value_.element_count(), variable, all_slots);
  }
}

template <typename T>
void LocalVariable::ApplyMeanOf(const UpdateRule& rule, const Tensor& mean) {
  T* slots[UpdateRule::kSlotCountMax];
  SlotPointers(slots);
  rule.ApplyMean(update_count_ - 1, own_.count,
                 mean.flat<T>().data() + own_.begin,
                 value_.mutable_flat<T>().data() + own_.begin,
                 absl::Span<T* const>(slots, rule.slots().size()));
}

Tensor LocalVariable::Dense(const RowSums& row_sums) const {
  Tensor dense = Tensor::Full(type_.dtype, type_.shape, 0);
  VisitNumber(type_.dtype, [&]<typename T>() {
    if constexpr (std::is_floating_point_v<T>) {
      const T* row = row_sums.values<T>();
      for (const int64_t index : row_sums.rows()) {
        std::copy_n(row, row_elements(),
                    dense.mutable_flat<T>().data() + index * row_elements());
        row += row_elements();
      }
    }
  });
  return dense;
}

void LocalVariable::TakeGradient(const Tensor& gradient,
                                 const RowSums* row_sums) {
  const UpdateRule& rule = *own_rule_;
  const bool is_float = type_.dtype == DType::kFloat32;
  if (own_.is_partial && own_.count == 0) {
    ++update_count_;
    return;
  }
  if (row_sums == nullptr) {
    is_float ? ApplyGradient<float>(rule, gradient)
             : ApplyGradient<double>(rule, gradient);
  } else if (rule.needs_whole_variables()) {
    const Tensor dense = Dense(*row_sums);
    is_float ? ApplyGradient<float>(rule, dense)
             : ApplyGradient<double>(rule, dense);
  } else {
    is_float ? ApplySparseGradient<float>(rule, *row_sums)
             : ApplySparseGradient<double>(rule, *row_sums);
  }
  Constrain();
  ++update_count_;
}

void LocalVariable::Constrain() {
  if (!spec_->has_constraint()) return;
  type_.dtype == DType::kFloat32
      ? ApplyConstraint(spec_->constraint(), type_.shape,
                        value_.mutable_flat<float>().data())
      : ApplyConstraint(spec_->constraint(), type_.shape,
                        value_.mutable_flat<double>().data());
}

Tensor LocalVariable::TakeMean() {
  const UpdateRule& rule = *own_rule_;
  Tensor& sum = slots_[rule.accumulator_slot()].value;
  Tensor mean = std::exchange(sum, Tensor::Full(type_.dtype, type_.shape, 0));
  VisitNumber(type_.dtype, [&]<typename T>() {
    if constexpr (std::is_floating_point_v<T>) {
      const T divisor = static_cast<T>(rule.gradients_per_update());
      for (T& element : mean.mutable_flat<T>()) element /= divisor;
    }
  });
  return mean;
}

absl::StatusOr<Tensor> LocalVariable::Accumulate(
    UpdateKind kind, const Tensor& gradient, const Tensor& indices,
    const std::shared_ptr<const UpdateRule>& rule, RowSums* row_sums) {
  RETURN_IF_ERROR(CheckUpdate({spec_->name(), type_}, kind, gradient, indices,
                              /*has_rule=*/true));
  const bool is_sparse = TakesIndices(kind);
  if (is_sparse) {
    RETURN_IF_ERROR(CheckIndices(indices));
    row_sums->Compute(indices, gradient);
  }
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(CheckNoRows(kind));
  RETURN_IF_ERROR(MakeSlots(rule));
  Slot& accumulator = slots_[own_rule_->accumulator_slot()];
  if (accumulator.is_share) {
    return absl::FailedPreconditionError(absl::StrCat(
        "variable \"", spec_->name(),
        "\": this step limits the gradients that it accumulates, and the first "
        "step that trained the variable did not; with sharded optimizer state "
        "all steps must"));
  }
  Tensor& sum = accumulator.value;
  if (!sum.IsSoleOwner()) sum = sum.Clone();
  if ((update_count_ + 1) % rule->gradients_per_update() != 0) {
    MakeWritable(/*keep_content=*/true);
    if (own_.is_partial) AddOtherElements(gradient, &sum);
    TakeGradient(gradient, is_sparse ? row_sums : nullptr);
    return Tensor();
  }
  ChangeByValue(is_sparse ? UpdateKind::kScatterAdd : UpdateKind::kAssignAdd,
                gradient, indices, &sum);
  ++update_count_;
  return TakeMean();
}

absl::Status LocalVariable::ApplyMean(
    const Tensor& mean, const std::shared_ptr<const UpdateRule>& rule) {
  RETURN_IF_ERROR(CheckUpdate({spec_->name(), type_},
                              UpdateKind::kApplyGradient, mean, Tensor(),
                              /*has_rule=*/true));
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(MakeSlots(rule));
  if (own_.is_partial && own_.count == 0) return absl::OkStatus();
  MakeWritable(/*keep_content=*/true);
  type_.dtype == DType::kFloat32 ? ApplyMeanOf<float>(*own_rule_, mean)
                                 : ApplyMeanOf<double>(*own_rule_, mean);
  Constrain();
  return absl::OkStatus();
}

absl::Status LocalVariable::Update(
    UpdateKind kind, const Tensor& value, const Tensor& indices,
    const std::shared_ptr<const UpdateRule>& rule, RowSums* row_sums) {
  RETURN_IF_ERROR(CheckUpdate({spec_->name(), type_}, kind, value, indices,
                              /*has_rule=*/rule != nullptr));
  if (TakesIndices(kind)) RETURN_IF_ERROR(CheckIndices(indices));
  if (kind == UpdateKind::kApplySparseGradient) {
    row_sums->Compute(indices, value);
  }
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(CheckNoRows(kind));
  if (IsGradient(kind)) RETURN_IF_ERROR(MakeSlots(rule));
  MakeWritable(/*keep_content=*/kind != UpdateKind::kAssign);
  if (IsGradient(kind)) {
    TakeGradient(value, TakesIndices(kind) ? row_sums : nullptr);
    return absl::OkStatus();
  }
  ChangeByValue(kind, value, indices, &value_);
  return absl::OkStatus();
}

int64_t LocalVariable::update_count() const {
  absl::ReaderMutexLock lock(&mutex_);
  return update_count_;
}

std::vector<LocalVariable::Slot> LocalVariable::ReadSlots() const {
  absl::ReaderMutexLock lock(&mutex_);
  return slots_;
}

VariableState LocalVariable::ReadState() const {
  absl::ReaderMutexLock lock(&mutex_);
  return {.value = value_, .slots = slots_, .update_count = update_count_};
}

absl::Status LocalVariable::CheckState(int64_t update_count,
                                       const std::vector<Slot>& slots) const {
  if (update_count < 0) {
    return Error(absl::StrCat("update count ", update_count, " is negative"));
  }
  for (const Slot& slot : slots) {
    if (slot.value.IsValid() && slot.value.dtype() == type_.dtype) continue;
    return Error(absl::StrCat(
        "slot \"", slot.name, "\" is ",
        slot.value.IsValid() ? slot.value.type().ToString() : "none",
        "; expected ", DTypeName(type_.dtype)));
  }
  return absl::OkStatus();
}

absl::Status LocalVariable::Restore(VariableState state) {
  RETURN_IF_ERROR(CheckState(state.update_count, state.slots));
  if (!state.value.IsValid() || state.value.type() != type_) {
    return Error(absl::StrCat(
        "the value is ",
        state.value.IsValid() ? state.value.type().ToString() : "none",
        "; expected ", type_.ToString()));
  }
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(ReduceToShare(&state.slots));
  value_ = std::move(state.value);
  update_count_ = state.update_count;
  slots_ = std::move(state.slots);
  slots_rule_ = nullptr;
  return absl::OkStatus();
}

absl::Status LocalVariable::Restore(int64_t update_count,
                                    std::vector<Slot> slots) {
  RETURN_IF_ERROR(CheckState(update_count, slots));
  for (Slot& slot : slots) slot.value = slot.value.Clone();
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(ReduceToShare(&slots));
  update_count_ = update_count;
  slots_ = std::move(slots);
  slots_rule_ = nullptr;
  return absl::OkStatus();
}

}  // namespace muster
