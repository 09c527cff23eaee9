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
  stripe_mutexes_ = std::vector<absl::Mutex>(stripe_count_);
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

void ShardVariable::CopyValue(Tensor* slot) {
  const size_t row_bytes = row_elements_ * SizeOf(type_.dtype);
  for (int stripe = 0; stripe < stripe_count_; ++stripe) {
    const size_t begin = StripeRowBegin(stripe) * row_bytes;
    const size_t end = StripeRowBegin(stripe + 1) * row_bytes;
    absl::MutexLock lock(&stripe_mutexes_[stripe]);
    std::copy(value_.raw_data() + begin, value_.raw_data() + end,
              slot->mutable_raw_data() + begin);
  }
}

absl::Status ShardVariable::MakeSlots(const UpdateRule& rule) {
  absl::MutexLock lock(&slots_mutex_);
  if (has_slots_) return absl::OkStatus();
  RETURN_IF_ERROR(rule.Prepare(type_, Place()));
  RETURN_IF_ERROR(
      PrepareConstraint(spec_->variable().constraint(), type_, Place()));
  std::vector<Tensor> slots;
  for (const SlotSpec& slot : rule.slots()) {
    const auto restored =
        std::find_if(slot_specs_.begin(), slot_specs_.end(),
                     [&](const SlotSpec& s) { return s.name == slot.name; });
    if (restored != slot_specs_.end()) {
      slots.push_back(slots_[restored - slot_specs_.begin()]);
      continue;
    }
    ASSIGN_OR_RETURN(slots.emplace_back(), MakeSlot(slot.initial_value));
    if (slot.starts_as_variable) CopyValue(&slots.back());
  }
  slots_ = std::move(slots);
  slot_specs_.assign(rule.slots().begin(), rule.slots().end());
  has_slots_ = true;
  return absl::OkStatus();
}

void ShardVariable::Begin(PreparedUpdate* update) {
  if (!IsGradient(update->kind)) return;
  update->rule_step = update_count_.fetch_add(1, std::memory_order_relaxed);
}

void ShardVariable::ApplyStripe(const PreparedUpdate& update, int stripe) {
  if (update.rule != nullptr && update.rule->needs_whole_variables()) {
    if (stripe == 0) ApplyWhole(update);
    return;
  }
  const int64_t row_begin = StripeRowBegin(stripe);
  const int64_t row_end = StripeRowBegin(stripe + 1);
  if (!TakesIndices(update.kind)) {
    absl::MutexLock lock(&stripe_mutexes_[stripe]);
    PutAside(update, stripe, 0, 0);
    ApplyDense(update, row_begin * row_elements_, row_end * row_elements_);
    Constrain(update, row_begin, row_end);
    return;
  }
  const auto begin =
      std::lower_bound(update.rows.begin(), update.rows.end(), row_begin);
  const auto end = std::lower_bound(begin, update.rows.end(), row_end);
  const bool finishes_rows =
      update.rule != nullptr && update.rule->ChangesAllRows(update.rule_step);
  const bool changes_all_rows =
      finishes_rows ||
      (IsGradient(update.kind) && spec_->variable().has_constraint());
  if (begin == end && !changes_all_rows) return;
  absl::MutexLock lock(&stripe_mutexes_[stripe]);
  const int64_t first = begin - update.rows.begin();
  const int64_t last = end - update.rows.begin();
  PutAside(update, stripe, changes_all_rows ? 0 : first,
           changes_all_rows ? 0 : last);
  if (first != last) ApplySparse(update, first, last);
  if (finishes_rows) {
    FinishSparse(update, row_begin * row_elements_, row_end * row_elements_);
  }
  Constrain(update, row_begin, row_end);
}

void ShardVariable::ApplyWhole(const PreparedUpdate& update) {
  // Others hold at most one of these locks, and wait for none meanwhile.
  for (absl::Mutex& stripe_mutex : stripe_mutexes_) stripe_mutex.Lock();
  for (int stripe = 0; stripe < stripe_count_; ++stripe) {
    PutAside(update, stripe, 0, 0);
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
  for (absl::Mutex& stripe_mutex : stripe_mutexes_) stripe_mutex.Unlock();
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
  const std::vector<std::string> names = slot_names();
  const auto found = std::find(names.begin(), names.end(), kAverageSlot);
  if (found == names.end()) return;
  const Tensor& average = slots_[found - names.begin()];
  const PreparedUpdate update{.variable = this, .kind = UpdateKind::kAssign};
  const size_t row_bytes = row_elements_ * SizeOf(type_.dtype);
  for (int stripe = 0; stripe < stripe_count_; ++stripe) {
    absl::MutexLock lock(&stripe_mutexes_[stripe]);
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
  absl::ReaderMutexLock lock(&stripe_mutexes_[stripe]);
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
      if (locked_stripe >= 0) stripe_mutexes_[locked_stripe].ReaderUnlock();
      stripe_mutexes_[stripe].ReaderLock();
      locked_stripe = stripe;
    }
    std::memcpy(out + i * row_bytes, table + rows[i] * row_bytes, row_bytes);
  }
  if (locked_stripe >= 0) stripe_mutexes_[locked_stripe].ReaderUnlock();
}

// ---- Saving and restoring.

FrozenRows::Block ShardVariable::BlockAt(int array, int block) {
  const int64_t row_bytes =
      row_elements_ * static_cast<int64_t>(SizeOf(type_.dtype));
  const int stripe = block / blocks_per_stripe_;
  const int64_t stripe_end = StripeRowBegin(stripe + 1);
  const int64_t begin =
      std::min(stripe_end, StripeRowBegin(stripe) +
                               block % blocks_per_stripe_ * rows_per_block_);
  const int64_t end = std::min(stripe_end, begin + rows_per_block_);
  const auto offset_bytes = static_cast<size_t>(begin * row_bytes);
  return {.array = array,
          .number = block,
          .offset_bytes = offset_bytes,
          .live = {ArrayAt(array).raw_data() + offset_bytes,
                   static_cast<size_t>((end - begin) * row_bytes)}};
}

void ShardVariable::PutAside(const PreparedUpdate& update, int stripe,
                             int64_t row_begin, int64_t row_end) {
  for (const std::weak_ptr<FrozenRows>& saved : frozen_) {
    const std::shared_ptr<FrozenRows> frozen = saved.lock();
    if (frozen == nullptr || frozen->is_read()) continue;
    PutAside(update, stripe, row_begin, row_end, frozen.get());
  }
}

void ShardVariable::PutAside(const PreparedUpdate& update, int stripe,
                             int64_t row_begin, int64_t row_end,
                             FrozenRows* frozen) {
  const int array_count = IsGradient(update.kind) ? frozen->array_count() : 1;
  const int block_begin = stripe * blocks_per_stripe_;
  const auto put_aside = [&](int block) {
    for (int array = 0; array < array_count; ++array) {
      frozen->PutAside(BlockAt(array, block));
    }
  };
  if (row_begin == row_end) {
    for (int i = 0; i < blocks_per_stripe_; ++i) put_aside(block_begin + i);
    return;
  }
  const int64_t stripe_row_begin = StripeRowBegin(stripe);
  int last = -1;
  for (int64_t i = row_begin; i < row_end; ++i) {
    const int block =
        block_begin +
        static_cast<int>((update.rows[i] - stripe_row_begin) / rows_per_block_);
    if (block == last) continue;
    put_aside(block);
    last = block;
  }
}

ShardVariable::Frozen ShardVariable::Freeze(
    std::shared_ptr<AsideBudget> budget) {
  std::erase_if(frozen_, [](const std::weak_ptr<FrozenRows>& saved) {
    return saved.expired();
  });
  Frozen frozen;
  frozen.slot_names = slot_names();
  frozen.update_count = update_count();
  frozen.rows = std::make_shared<FrozenRows>(
      1 + static_cast<int>(frozen.slot_names.size()),
      stripe_count_ * blocks_per_stripe_, value_.size_bytes(),
      std::move(budget));
  frozen_.push_back(frozen.rows);
  return frozen;
}

void ShardVariable::Thaw() {
  for (const std::weak_ptr<FrozenRows>& saved : frozen_) {
    if (const auto frozen = saved.lock(); frozen != nullptr) frozen->GiveUp();
  }
  frozen_.clear();
}

absl::Status ShardVariable::ReadFrozen(
    const Frozen& frozen, int array,
    absl::FunctionRef<absl::Status(absl::Span<const uint8_t>)> sink) {
  std::vector<uint8_t> bytes;
  for (int block = 0; block < stripe_count_ * blocks_per_stripe_; ++block) {
    bool is_read = false;
    {
      absl::MutexLock lock(&stripe_mutexes_[block / blocks_per_stripe_]);
      // The slots may have been removed.
      if (!frozen.rows->is_given_up()) {
        const FrozenRows::Block now = BlockAt(array, block);
        bytes.resize(now.live.size());
        is_read = frozen.rows->Take(now, bytes.data());
      }
    }
    if (!is_read) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "variable \"", spec_->shard_name(),
          "\" cannot be saved: updates changed more data during the save than "
          "there is memory to copy, or variables were restored meanwhile. Save "
          "again"));
    }
    RETURN_IF_ERROR(sink(bytes));
  }
  return absl::OkStatus();
}

std::vector<std::string> ShardVariable::slot_names() const {
  absl::MutexLock lock(&slots_mutex_);
  std::vector<std::string> names;
  for (const SlotSpec& slot : slot_specs_) names.push_back(slot.name);
  return names;
}

absl::Status ShardVariable::PrepareSlots(const UpdateRule* rule,
                                         absl::Span<const std::string> names) {
  if (rule != nullptr) return MakeSlots(*rule);
  absl::MutexLock lock(&slots_mutex_);
  if (has_slots_) return absl::OkStatus();
  slot_specs_.clear();
  slots_.clear();
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(Tensor slot, MakeSlot(0));
    slots_.push_back(std::move(slot));
    slot_specs_.push_back({.name = name});
  }
  return absl::OkStatus();
}

void ShardVariable::Overwrite(int array, int64_t offset_bytes,
                              absl::Span<const uint8_t> bytes) {
  const int64_t row_bytes =
      row_elements_ * static_cast<int64_t>(SizeOf(type_.dtype));
  uint8_t* const to = ArrayAt(array).mutable_raw_data();
  while (!bytes.empty()) {
    const int stripe =
        static_cast<int>(offset_bytes / (rows_per_stripe_ * row_bytes));
    const int64_t stripe_end = StripeRowBegin(stripe + 1) * row_bytes;
    const size_t count =
        std::min<size_t>(bytes.size(), stripe_end - offset_bytes);
    absl::MutexLock lock(&stripe_mutexes_[stripe]);
    std::memcpy(to + offset_bytes, bytes.data(), count);
    bytes.remove_prefix(count);
    offset_bytes += static_cast<int64_t>(count);
  }
}

void ShardVariable::ResetSlot(int array) {
  SlotSpec spec;
  {
    absl::MutexLock lock(&slots_mutex_);
    spec = slot_specs_[array - 1];
  }
  if (spec.starts_as_variable) {
    CopyValue(&slots_[array - 1]);
    return;
  }
  VisitNumber(type_.dtype, [&]<typename T>() {
    if constexpr (std::is_floating_point_v<T>) {
      T* const slot = slots_[array - 1].mutable_flat<T>().data();
      for (int stripe = 0; stripe < stripe_count_; ++stripe) {
        absl::MutexLock lock(&stripe_mutexes_[stripe]);
        std::fill(slot + StripeRowBegin(stripe) * row_elements_,
                  slot + StripeRowBegin(stripe + 1) * row_elements_,
                  static_cast<T>(spec.initial_value));
      }
    }
  });
}

void ShardVariable::DropSlots() {
  // A reader of a snapshot that Thaw() abandoned may still hold a stripe's
  // lock.
  for (absl::Mutex& stripe_mutex : stripe_mutexes_) {
    absl::MutexLock lock(&stripe_mutex);
  }
  absl::MutexLock lock(&slots_mutex_);
  has_slots_ = false;
  slot_specs_.clear();
  slots_.clear();
}

void ShardVariable::FinishRestore(int64_t update_count) {
  update_count_.store(update_count, std::memory_order_relaxed);
  End();
}

}  // namespace muster
