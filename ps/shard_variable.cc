#include "ps/shard_variable.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/compute/optimizers/staged_rule.h"
#include "common/compute/variables/constraint.h"
#include "common/compute/variables/update_kind.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "proto/parameter_server.pb.h"
#include "ps/prepared_update.h"
#include "ps/slab.h"

namespace muster {
namespace {

// Small enough for a stripe's gradient and values to stay in the L2 cache,
// large enough to make the cost of its lock negligible.
constexpr int64_t kStripeBytes = 256 << 10;
constexpr int64_t kStripeCountMax = 64;
// Bytes that a save copies while it holds a lock.
constexpr int64_t kBlockBytes = 1 << 20;
// Bits of a version that count updates; a server applies them for years.
constexpr int kUpdateBits = 40;
constexpr size_t kRunBytes = 64 << 10;
constexpr size_t kRowsAhead = 8;

TensorType RowsType(const TensorType& type, int64_t row_count) {
  TensorType rows = type;
  if (rows.shape.rank() > 0) rows.shape.set_dim(0, row_count);
  return rows;
}

// A buffer for a run of values that is not aligned in its message. On the stack
// unless rows are very large.
class Scratch {
 public:
  explicit Scratch(size_t size_bytes) {
    if (size_bytes > sizeof(fixed_)) {
      large_ = std::make_unique<double[]>(size_bytes / sizeof(double) + 1);
    }
  }
  void* data() { return large_ ? static_cast<void*>(large_.get()) : fixed_; }

 private:
  alignas(64) uint8_t fixed_[kRunBytes];
  std::unique_ptr<double[]> large_;
};

}  // namespace

ShardVariable::ShardVariable(const proto::ShardSpec& spec, uint32_t handle,
                             Tensor value, uint64_t generation)
    : spec_(std::make_unique<const proto::ShardSpec>(spec)),
      handle_(handle),
      type_(value.type()),
      row_count_(type_.shape.rank() == 0 ? 1 : type_.shape.dim(0)),
      row_elements_(row_count_ == 0
                        ? type_.shape.ElementCountInRange(1, type_.shape.rank())
                        : value.element_count() / row_count_),
      value_(std::move(value)),
      version_(static_cast<int64_t>(generation << kUpdateBits) + 1) {
  const int64_t row_bytes = std::max<int64_t>(
      1, row_elements_ * static_cast<int64_t>(SizeOf(type_.dtype)));
  const int64_t row_count = std::max<int64_t>(1, row_count_);
  rows_per_stripe_ =
      std::max({int64_t{1}, kStripeBytes / row_bytes,
                (row_count + kStripeCountMax - 1) / kStripeCountMax});
  if (NeedsAllRows(spec_->variable().constraint(), type_.shape.rank())) {
    rows_per_stripe_ = row_count;
  }
  stripe_count_ =
      static_cast<int>((row_count + rows_per_stripe_ - 1) / rows_per_stripe_);
  rows_per_block_ =
      std::min(rows_per_stripe_, std::max<int64_t>(1, kBlockBytes / row_bytes));
  blocks_per_stripe_ = static_cast<int>(
      (rows_per_stripe_ + rows_per_block_ - 1) / rows_per_block_);
  stripes_ = std::vector<Stripe>(stripe_count_);
  drawn_counts_.resize(stripe_count_);
}

ShardVariable::~ShardVariable() = default;

int64_t ShardVariable::StripeRowBegin(int stripe) const {
  return std::min(row_count_, stripe * rows_per_stripe_);
}

absl::Status ShardVariable::Mismatch(const TensorType& expected,
                                     const TensorType& received) const {
  return absl::InvalidArgumentError(
      absl::StrCat("variable \"", spec_->shard_name(), "\" expected a value ",
                   expected.ToString(), "; got ", received.ToString()));
}

absl::StatusOr<std::vector<int64_t>> ShardVariable::CheckRows(
    const ReceivedTensor& indices) const {
  const TensorType& received = indices.type();
  if (received.dtype != DType::kInt64 || received.shape.rank() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable \"", spec_->shard_name(),
        "\" expected row indices int64[n]; got ", received.ToString()));
  }
  if (type_.shape.rank() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable \"", spec_->shard_name(), "\" is a scalar and has no rows"));
  }
  std::vector<int64_t> rows(received.shape.dim(0));
  indices.CopyTo(rows.data());
  for (int64_t row : rows) {
    if (row < 0 || row >= row_count_) {
      return absl::InvalidArgumentError(
          absl::StrCat("row ", row, " of variable \"", spec_->shard_name(),
                       "\" does not exist; it has ", row_count_, " rows"));
    }
  }
  return rows;
}

absl::StatusOr<PreparedUpdate> ShardVariable::Prepare(
    UpdateKind kind, const ReceivedTensor& value, const ReceivedTensor* indices,
    std::shared_ptr<const UpdateRule> rule) {
  PreparedUpdate update{.variable = this, .kind = kind, .value = value};
  if (IsGradient(kind)) {
    if (type_.dtype != DType::kFloat32 && type_.dtype != DType::kFloat64) {
      return absl::InvalidArgumentError(absl::StrCat(
          "variable \"", spec_->shard_name(), "\" is of ",
          DTypeString(type_.dtype),
          "; optimizers update float32 and float64 variables only"));
    }
    if (rule == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("got a gradient for variable \"", spec_->shard_name(),
                       "\", but no optimizer was set"));
    }
    update.rule = std::move(rule);
  }
  if (IsAddition(kind) && type_.dtype == DType::kBool) {
    return absl::InvalidArgumentError(
        absl::StrCat("variable \"", spec_->shard_name(),
                     "\" is of bool and cannot be added to"));
  }
  TensorType expected = type_;
  if (TakesIndices(kind)) {
    MUSTER_CHECK(indices != nullptr);
    ASSIGN_OR_RETURN(update.rows, CheckRows(*indices));
    expected = RowsType(type_, update.rows.size());
  }
  if (value.type() != expected) return Mismatch(expected, value.type());
  if (TakesIndices(kind)) {
    RETURN_IF_ERROR(PutRowsInOrder(row_elements_, &update));
  }
  if (IsGradient(kind)) RETURN_IF_ERROR(MakeSlots(*update.rule));
  return update;
}

absl::StatusOr<Tensor> ShardVariable::MakeSlot(double initial_value) const {
  ASSIGN_OR_RETURN(Tensor tensor, AllocateSlab(type_));
  // A slab is zero, and its pages cost no memory until they are touched.
  if (initial_value == 0) return tensor;
  VisitNumber(type_.dtype, [&]<typename T>() {
    if constexpr (std::is_floating_point_v<T>) {
      const absl::Span<T> flat = tensor.mutable_flat<T>();
      std::fill(flat.begin(), flat.end(), static_cast<T>(initial_value));
    }
  });
  return tensor;
}

absl::Status ShardVariable::MakeSlots(const UpdateRule& rule) {
  absl::MutexLock lock(&slots_mutex_);
  if (has_slots_) return absl::OkStatus();
  RETURN_IF_ERROR(rule.Prepare(type_, Place()));
  RETURN_IF_ERROR(
      PrepareConstraint(spec_->variable().constraint(), type_, Place()));
  std::vector<Tensor> slots;
  std::vector<int> to_fill;
  for (const SlotSpec& slot : rule.slots()) {
    const auto restored =
        std::find_if(slot_specs_.begin(), slot_specs_.end(),
                     [&](const SlotSpec& s) { return s.name == slot.name; });
    if (restored != slot_specs_.end()) {
      slots.push_back(slots_[restored - slot_specs_.begin()]);
      continue;
    }
    ASSIGN_OR_RETURN(slots.emplace_back(), MakeSlot(slot.initial_value));
    if (slot.starts_as_variable) {
      to_fill.push_back(static_cast<int>(slots.size()) - 1);
    }
  }
  slots_ = std::move(slots);
  slot_specs_.assign(rule.slots().begin(), rule.slots().end());
  has_slots_ = true;
  slots_to_fill_ = std::move(to_fill);
  has_slots_to_fill_.store(!slots_to_fill_.empty(), std::memory_order_release);
  return absl::OkStatus();
}

bool ShardVariable::ChangesAllStripes(const PreparedUpdate& update) const {
  return !TakesIndices(update.kind) || !update.slots_to_fill.empty() ||
         NeedsWhole(update) ||
         (IsGradient(update.kind) &&
          (spec_->variable().has_constraint() ||
           update.rule->ChangesAllRows(update.rule_step)));
}

void ShardVariable::DrawTickets(PreparedUpdate* update) {
  if (IsGradient(update->kind)) {
    update->rule_step = update_count_.fetch_add(1, std::memory_order_relaxed);
    update->slots_to_fill = TakeSlotsToFill();
  }
  if (ChangesAllStripes(*update)) {
    update->tickets.assign(drawn_counts_.begin(), drawn_counts_.end());
    for (int64_t& count : drawn_counts_) ++count;
    return;
  }
  update->tickets.assign(stripe_count_, kNoTicket);
  int64_t row_end = 0;
  for (const int64_t row : update->rows) {
    if (row < row_end) continue;
    const int stripe = StripeOf(row);
    update->tickets[stripe] = drawn_counts_[stripe]++;
    row_end = StripeRowBegin(stripe + 1);
  }
}

bool ShardVariable::IsNext(const PreparedUpdate& update, int stripe) const {
  if (!NeedsWhole(update)) return IsNextOf(update, stripe);
  for (int i = 0; i < stripe_count_; ++i) {
    if (!IsNextOf(update, i)) return false;
  }
  return true;
}

bool ShardVariable::IsNextOf(const PreparedUpdate& update, int stripe) const {
  return update.tickets[stripe] == kNoTicket ||
         update.tickets[stripe] ==
             stripes_[stripe].applied_count.load(std::memory_order_acquire);
}

void ShardVariable::ApplyFirstStripe(PreparedUpdate* update, int stripe,
                                     absl::FunctionRef<bool()> enter) {
  absl::MutexLock lock(&stripes_[stripe].mutex);
  if (enter()) ApplyInTurn(*update, stripe);
}

void ShardVariable::ApplyStripe(const PreparedUpdate& update, int stripe) {
  if (update.tickets[stripe] == kNoTicket) return;
  absl::MutexLock lock(&stripes_[stripe].mutex);
  ApplyInTurn(update, stripe);
}

void ShardVariable::ApplyInTurn(const PreparedUpdate& update, int stripe) {
  if (update.tickets[stripe] == kNoTicket) return;
  AwaitTurn(update, stripe);
  if (NeedsWhole(update)) {
    ApplyWhole(update);
  } else {
    ApplyNow(update, stripe);
    EndTurn(update, stripe);
  }
}

void ShardVariable::AwaitTurn(const PreparedUpdate& update, int stripe) {
#ifdef MUSTER_PLANT_NO_TICKETS
  return;
#endif
  const auto is_next = [&] { return IsNextOf(update, stripe); };
  // No deadline: the updates before only compute.
  if (!is_next()) stripes_[stripe].mutex.Await(absl::Condition(&is_next));
}

void ShardVariable::EndTurn(const PreparedUpdate& update, int stripe) {
  stripes_[stripe].applied_count.store(update.tickets[stripe] + 1,
                                       std::memory_order_release);
}

void ShardVariable::ApplyNow(const PreparedUpdate& update, int stripe) {
  const int64_t row_begin = StripeRowBegin(stripe);
  const int64_t row_end = StripeRowBegin(stripe + 1);
  if (!TakesIndices(update.kind)) {
    PutAside(update, stripe, 0, 0);
    for (const int slot : update.slots_to_fill) FillSlot(slot, stripe);
    ApplyDense(update, row_begin * row_elements_, row_end * row_elements_);
    Constrain(update, row_begin, row_end);
    return;
  }
  const auto begin =
      std::lower_bound(update.rows.begin(), update.rows.end(), row_begin);
  const auto end = std::lower_bound(begin, update.rows.end(), row_end);
  const int64_t first = begin - update.rows.begin();
  const int64_t last = end - update.rows.begin();
  const bool changes_all_rows = ChangesAllStripes(update);
  PutAside(update, stripe, changes_all_rows ? 0 : first,
           changes_all_rows ? 0 : last);
  for (const int slot : update.slots_to_fill) FillSlot(slot, stripe);
  if (first != last) ApplySparse(update, first, last);
  if (update.rule != nullptr && update.rule->ChangesAllRows(update.rule_step)) {
    FinishSparse(update, row_begin * row_elements_, row_end * row_elements_);
  }
  Constrain(update, row_begin, row_end);
}

void ShardVariable::ApplyWhole(const PreparedUpdate& update) {
  // All updates that need the whole variable lock in this order.
  for (int stripe = 1; stripe < stripe_count_; ++stripe) {
    stripes_[stripe].mutex.Lock();
    AwaitTurn(update, stripe);
  }
  for (int stripe = 0; stripe < stripe_count_; ++stripe) {
    PutAside(update, stripe, 0, 0);
    for (const int slot : update.slots_to_fill) FillSlot(slot, stripe);
  }
  VisitNumber(type_.dtype, [&]<typename T>() {
    if constexpr (std::is_floating_point_v<T>) {
      const std::vector<T> gradient =
          DenseGradient<T>(update, row_count_, row_elements_);
      T* slots[UpdateRule::kSlotCountMax];
      for (size_t i = 0; i < slots_.size(); ++i) {
        slots[i] = slots_[i].mutable_flat<T>().data();
      }
      update.rule->Apply(update.rule_step, value_.element_count(),
                         gradient.data(), value_.mutable_flat<T>().data(),
                         absl::MakeConstSpan(slots, slots_.size()));
    }
  });
  Constrain(update, 0, row_count_);
  for (int stripe = 0; stripe < stripe_count_; ++stripe) {
    EndTurn(update, stripe);
    if (stripe > 0) stripes_[stripe].mutex.Unlock();
  }
}

void ShardVariable::FillSlot(int slot, int stripe) {
  const size_t row_bytes = row_elements_ * SizeOf(type_.dtype);
  const size_t begin = StripeRowBegin(stripe) * row_bytes;
  const size_t end = StripeRowBegin(stripe + 1) * row_bytes;
  std::copy(value_.raw_data() + begin, value_.raw_data() + end,
            slots_[slot].mutable_raw_data() + begin);
}

void ShardVariable::FillSlot(int slot) {
  for (int stripe = 0; stripe < stripe_count_; ++stripe) {
    absl::MutexLock lock(&stripes_[stripe].mutex);
    FillSlot(slot, stripe);
  }
}

void ShardVariable::FillSlots() {
  for (const int slot : TakeSlotsToFill()) FillSlot(slot);
}

std::vector<int> ShardVariable::TakeSlotsToFill() {
  if (!has_slots_to_fill_.load(std::memory_order_acquire)) return {};
  absl::MutexLock lock(&slots_mutex_);
  has_slots_to_fill_.store(false, std::memory_order_relaxed);
  return std::exchange(slots_to_fill_, {});
}

void ShardVariable::Constrain(const PreparedUpdate& update, int64_t row_begin,
                              int64_t row_end) {
  if (!IsGradient(update.kind) || !spec_->variable().has_constraint()) return;
  const Shape rows = RowsType(type_, row_end - row_begin).shape;
  VisitNumber(type_.dtype, [&]<typename T>() {
    if constexpr (std::is_floating_point_v<T>) {
      ApplyConstraint(
          spec_->variable().constraint(), rows,
          value_.mutable_flat<T>().data() + row_begin * row_elements_);
    }
  });
}

void ShardVariable::FinishSparse(const PreparedUpdate& update, int64_t begin,
                                 int64_t end) {
  VisitNumber(type_.dtype, [&]<typename T>() {
    if constexpr (std::is_floating_point_v<T>) {
      T* slots[UpdateRule::kSlotCountMax];
      for (size_t i = 0; i < slots_.size(); ++i) {
        slots[i] = slots_[i].mutable_flat<T>().data() + begin;
      }
      update.rule->FinishRows(update.rule_step, end - begin,
                              value_.mutable_flat<T>().data() + begin,
                              absl::MakeConstSpan(slots, slots_.size()));
    }
  });
}

void ShardVariable::AssignAverage() {
  FillSlots();
  const std::vector<std::string> names = slot_names();
  const auto found = std::find(names.begin(), names.end(), kAverageSlot);
  if (found == names.end()) return;
  const Tensor& average = slots_[found - names.begin()];
  const PreparedUpdate update{.variable = this, .kind = UpdateKind::kAssign};
  const size_t row_bytes = row_elements_ * SizeOf(type_.dtype);
  for (int stripe = 0; stripe < stripe_count_; ++stripe) {
    absl::MutexLock lock(&stripes_[stripe].mutex);
    PutAside(update, stripe, 0, 0);
    const size_t begin_bytes = StripeRowBegin(stripe) * row_bytes;
    const size_t end_bytes = StripeRowBegin(stripe + 1) * row_bytes;
    std::memcpy(value_.mutable_raw_data() + begin_bytes,
                average.raw_data() + begin_bytes, end_bytes - begin_bytes);
  }
  End();
}

void ShardVariable::ApplyDense(const PreparedUpdate& update, int64_t begin,
                               int64_t end) {
  Scratch scratch(kRunBytes);
  VisitNumber(type_.dtype, [&]<typename T>() {
    T* const target = value_.mutable_flat<T>().data();
    update.value.VisitRuns(
        begin, end, kRunBytes / sizeof(T), scratch.data(),
        [&](int64_t offset, const void* data, int64_t count) {
          const T* const values = static_cast<const T*>(data);
          if (update.kind == UpdateKind::kAssign) {
            std::memcpy(target + offset, values, count * sizeof(T));
          } else if (IsAddition(update.kind)) {
            AddInto(count, values, IsSubtraction(update.kind), target + offset);
          } else if constexpr (std::is_floating_point_v<T>) {
            T* slots[UpdateRule::kSlotCountMax];
            for (size_t i = 0; i < slots_.size(); ++i) {
              slots[i] = slots_[i].mutable_flat<T>().data() + offset;
            }
            update.rule->Apply(update.rule_step, count, values, target + offset,
                               absl::MakeConstSpan(slots, slots_.size()));
          }
        });
  });
}

void ShardVariable::ApplySparse(const PreparedUpdate& update, int64_t row_begin,
                                int64_t row_end) {
  if (row_elements_ == 0) return;
  const size_t row_bytes = row_elements_ * SizeOf(type_.dtype);
  const int64_t rows_per_run = std::max<size_t>(1, kRunBytes / row_bytes);
  const bool is_gradient = IsGradient(update.kind);
  const bool subtracts = IsSubtraction(update.kind);
  Scratch scratch(rows_per_run * row_bytes);
  VisitNumber(type_.dtype, [&]<typename T>() {
    T* const target = value_.mutable_flat<T>().data();
    update.value.VisitRuns(
        row_begin * row_elements_, row_end * row_elements_,
        rows_per_run * row_elements_, scratch.data(),
        [&](int64_t offset, const void* data, int64_t count) {
          const T* values = static_cast<const T*>(data);
          const auto rows =
              absl::MakeConstSpan(update.rows)
                  .subspan(offset / row_elements_, count / row_elements_);
          if (!is_gradient) {
            for (int64_t row : rows) {
              T* const to = target + row * row_elements_;
              if (update.kind == UpdateKind::kScatterUpdate) {
                std::memcpy(to, values, row_bytes);
              } else {
                AddInto(row_elements_, values, subtracts, to);
              }
              values += row_elements_;
            }
          } else if constexpr (std::is_floating_point_v<T>) {
            T* slots[UpdateRule::kSlotCountMax];
            for (size_t i = 0; i < slots_.size(); ++i) {
              slots[i] = slots_[i].mutable_flat<T>().data();
            }
            update.rule->ApplyRows(update.rule_step, row_elements_, rows,
                                   values, target,
                                   absl::MakeConstSpan(slots, slots_.size()));
          }
        });
  });
}

void ShardVariable::CopyStripe(int stripe, uint8_t* value) const {
  const size_t row_bytes = row_elements_ * SizeOf(type_.dtype);
  const size_t begin_bytes = StripeRowBegin(stripe) * row_bytes;
  const size_t end_bytes = StripeRowBegin(stripe + 1) * row_bytes;
  absl::ReaderMutexLock lock(&stripes_[stripe].mutex);
  std::memcpy(value + begin_bytes, value_.raw_data() + begin_bytes,
              end_bytes - begin_bytes);
}

void ShardVariable::GatherRows(absl::Span<const int64_t> rows,
                               uint8_t* out) const {
  const size_t row_bytes = row_elements_ * SizeOf(type_.dtype);
  const uint8_t* const table = value_.raw_data();
  const size_t prefetch_bytes = std::min<size_t>(row_bytes, 512);
  int locked_stripe = -1;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i + kRowsAhead < rows.size()) {
      const uint8_t* ahead = table + rows[i + kRowsAhead] * row_bytes;
      for (size_t line = 0; line < prefetch_bytes; line += 64) {
        __builtin_prefetch(ahead + line);
      }
    }
    const int stripe = StripeOf(rows[i]);
    if (stripe != locked_stripe) {
      if (locked_stripe >= 0) stripes_[locked_stripe].mutex.ReaderUnlock();
      stripes_[stripe].mutex.ReaderLock();
      locked_stripe = stripe;
    }
    std::memcpy(out + i * row_bytes, table + rows[i] * row_bytes, row_bytes);
  }
  if (locked_stripe >= 0) stripes_[locked_stripe].mutex.ReaderUnlock();
}

}  // namespace muster
