#ifndef PS_SHARD_VARIABLE_H_
#define PS_SHARD_VARIABLE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/compute/variables/update_kind.h"
#include "common/core/tensor/tensor.h"
#include "common/net/rpc/message.h"
#include "ps/frozen_rows.h"
#include "ps/prepared_update.h"

namespace muster {

namespace proto {
class ShardSpec;
}  // namespace proto

// One shard of one variable, with its optimizer slots.
//
// A *stripe* is a range of rows with its own lock. An update is applied stripe
// by stripe, so that several pushes can update a large variable concurrently. A
// concurrent read may see some stripes before an update and others after it.
// All stripes are updated in the order of the tickets (ExchangeOrder). After
// each gradient the constraint of the variable is applied. A variable whose
// constraint needs all rows has only one stripe. An update by a rule that needs
// the whole variable is applied to all stripes at once.
//
// Thread-safe.
class ShardVariable {
 public:
  // A version holds no higher generation.
  static constexpr uint64_t kGenerationMax = (uint64_t{1} << 22) - 1;

  // `value` has the dtype of the variable and the shape of the shard's rows.
  // `generation` is the generation of training in which the shard is created.
  ShardVariable(const proto::ShardSpec& spec, uint32_t handle, Tensor value,
                uint64_t generation = 0);
  ~ShardVariable();

  const proto::ShardSpec& spec() const { return *spec_; }
  uint32_t handle() const { return handle_; }
  const TensorType& type() const { return type_; }
  int64_t row_count() const { return row_count_; }
  int64_t row_elements() const { return row_elements_; }
  size_t size_bytes() const { return value_.size_bytes(); }

  // Increases with every update. A copy made after version() was read holds at
  // least all updates up to that version.
  //
  // Its upper bits are the generation. The process that replaces a lost server
  // creates its shards in a higher generation, so its versions are higher than
  // all versions of the lost process, whatever it has applied.
  int64_t version() const { return version_.load(std::memory_order_acquire); }
  // Returns the number of gradients applied.
  int64_t update_count() const {
    return update_count_.load(std::memory_order_relaxed);
  }

  // Validates an update, sorts its rows, and allocates the slots for the first
  // gradient. `indices` is null for the dense kinds.
  //   kInvalidArgument     the value's type or an index does not fit the
  //                        variable
  //   kFailedPrecondition  a gradient without a rule
  //   kResourceExhausted   there is no memory for the slots
  absl::StatusOr<PreparedUpdate> Prepare(UpdateKind kind,
                                         const ReceivedTensor& value,
                                         const ReceivedTensor* indices,
                                         std::shared_ptr<const UpdateRule> rule)
      ABSL_LOCKS_EXCLUDED(slots_mutex_);

  // Returns the row numbers of a gather or a sparse update.
  //   kInvalidArgument  `indices` is not int64[n], or a row does not exist
  absl::StatusOr<std::vector<int64_t>> CheckRows(
      const ReceivedTensor& indices) const;

  // True if the rule of the update needs the whole variable.
  static bool NeedsWhole(const PreparedUpdate& update) {
    return update.rule != nullptr && update.rule->needs_whole_variables();
  }

  // An update consists of DrawTickets(), ApplyStripe() for every stripe in any
  // order and on any thread, or for stripe 0 alone if NeedsWhole(), and End().
  // Updates of one push to the same variable are applied one after another.
  //
  // ExchangeOrder calls DrawTickets(), for one update at a time.
  void DrawTickets(PreparedUpdate* update) ABSL_LOCKS_EXCLUDED(slots_mutex_);
  // Returns a stripe for ApplyFirstStripe().
  int FirstStripe(const PreparedUpdate& update) const {
    return update.rows.empty() || NeedsWhole(update)
               ? 0
               : StripeOf(update.rows.front());
  }
  // Holds the stripe while `enter` draws the tickets of a push, and applies the
  // update to it, unless `enter` returns false. Pushes that wait for the stripe
  // have no tickets yet, so that one that runs may overtake others, which
  // sleep.
  void ApplyFirstStripe(PreparedUpdate* update, int stripe,
                        absl::FunctionRef<bool()> enter);
  // True if no update with an earlier ticket has to be applied to the stripe.
  bool IsNext(const PreparedUpdate& update, int stripe) const;
  // Blocks until IsNext(), and applies the update to the stripe.
  void ApplyStripe(const PreparedUpdate& update, int stripe);
  void End() { version_.fetch_add(1, std::memory_order_release); }

  // Replaces the value by its moving average, if there is one. Call only while
  // no update is running.
  void AssignAverage() ABSL_LOCKS_EXCLUDED(slots_mutex_);

  int stripe_count() const { return stripe_count_; }
  // The size of one stripe, to estimate the work.
  size_t stripe_bytes() const {
    return size_bytes() / static_cast<size_t>(stripe_count_);
  }

  // Copies the stripe to its offset in `value`, which has size_bytes() bytes.
  void CopyStripe(int stripe, uint8_t* value) const;

  // Copies `rows` to `out`, one after another.
  void GatherRows(absl::Span<const int64_t> rows, uint8_t* out) const
      ABSL_NO_THREAD_SAFETY_ANALYSIS;  // Locks one stripe at a time.

  // ---- Saving. Array 0 is the value; array i is slot i - 1.

  // A snapshot of the variable. Several can exist at a time. Call Freeze() only
  // while no update and no Prepare() is running.
  struct Frozen {
    std::shared_ptr<FrozenRows> rows;
    std::vector<std::string> slot_names;
    int64_t update_count = 0;
    // For the log of the server only.
    int64_t version = 0;
    bool has_slots = false;  // The optimizer has made the slots.
  };
  Frozen Freeze(std::shared_ptr<AsideBudget> budget)
      ABSL_LOCKS_EXCLUDED(slots_mutex_);

  // Abandons all snapshots. Call only while no update is running.
  void Thaw();

  // Passes the bytes of an array to `sink`, in order, while updates continue.
  // Each array of a snapshot is read once, by one thread.
  //   kResourceExhausted  the budget is exhausted, or Thaw() was called
  //   others              errors of `sink`
  absl::Status ReadFrozen(
      const Frozen& frozen, int array,
      absl::FunctionRef<absl::Status(absl::Span<const uint8_t> bytes)> sink);

  // ---- Restoring. No training may run meanwhile; concurrent readers see a mix
  // of old and new values.

  // If `rule` is not null, creates its slots. Otherwise creates the slots
  // `names`, unless a gradient has been applied.
  absl::Status PrepareSlots(const UpdateRule* rule,
                            absl::Span<const std::string> names)
      ABSL_LOCKS_EXCLUDED(slots_mutex_);
  std::vector<std::string> slot_names() const ABSL_LOCKS_EXCLUDED(slots_mutex_);

  // Overwrites bytes of an array from `offset_bytes` on.
  void Overwrite(int array, int64_t offset_bytes,
                 absl::Span<const uint8_t> bytes);
  // Fills slot array - 1 with its initial value.
  void ResetSlot(int array);
  // Removes the slots, as before the first gradient. Call after Thaw().
  void DropSlots() ABSL_LOCKS_EXCLUDED(slots_mutex_);
  // Ends a restore: sets the number of gradients applied, and increments the
  // version.
  void FinishRestore(int64_t update_count);
  // The same, with the version of the variable that was frozen.
  void FinishRestore(int64_t update_count, int64_t version);

 private:
  // Has a cache line of its own, because several threads follow each other from
  // stripe to stripe.
  struct alignas(64) Stripe {
    // Guards the rows of the stripe, in the value and in every slot.
    mutable absl::Mutex mutex;
    // The number of updates that have been applied, which is the next ticket.
    // Written while `mutex` is held.
    std::atomic<int64_t> applied_count{0};
  };

  int64_t StripeRowBegin(int stripe) const;
  int StripeOf(int64_t row) const {
    return static_cast<int>(row / rows_per_stripe_);
  }
  absl::Status MakeSlots(const UpdateRule& rule)
      ABSL_LOCKS_EXCLUDED(slots_mutex_);
  absl::StatusOr<Tensor> MakeSlot(double initial_value) const;
  // Copies the value of a stripe, whose mutex is held, or of all stripes into a
  // slot of its type.
  void FillSlot(int slot, int stripe);
  void FillSlot(int slot);
  // Fills all slots that no update has filled. Call only while no update is
  // running.
  void FillSlots() ABSL_LOCKS_EXCLUDED(slots_mutex_);
  std::vector<int> TakeSlotsToFill() ABSL_LOCKS_EXCLUDED(slots_mutex_);
  // True if the update changes every row; otherwise it changes update.rows.
  bool ChangesAllStripes(const PreparedUpdate& update) const;
  Tensor& ArrayAt(int array) { return array == 0 ? value_ : slots_[array - 1]; }
  // Returns the part of an array that `block` covers. Blocks are parts of
  // stripes.
  FrozenRows::Block BlockAt(int array, int block);
  // Copies the blocks that the update changes, for all snapshots or for one.
  // Equal bounds stand for all rows of the stripe.
  void PutAside(const PreparedUpdate& update, int stripe, int64_t row_begin,
                int64_t row_end);
  void PutAside(const PreparedUpdate& update, int stripe, int64_t row_begin,
                int64_t row_end, FrozenRows* frozen);
  // Blocks until IsNext(), and applies the update. The mutex of the stripe is
  // held.
  void ApplyInTurn(const PreparedUpdate& update, int stripe);
  bool IsNextOf(const PreparedUpdate& update, int stripe) const;
  // The mutex of the stripe is held.
  void AwaitTurn(const PreparedUpdate& update, int stripe);
  void EndTurn(const PreparedUpdate& update, int stripe);
  void ApplyNow(const PreparedUpdate& update, int stripe);
  // Applies a gradient with a rule that needs the whole variable. The mutex of
  // stripe 0 is held, and it is the turn of the update there.
  void ApplyWhole(const PreparedUpdate& update)
      ABSL_NO_THREAD_SAFETY_ANALYSIS;  // Locks the other stripes.
  void ApplyDense(const PreparedUpdate& update, int64_t begin, int64_t end);
  void ApplySparse(const PreparedUpdate& update, int64_t row_begin,
                   int64_t row_end);
  // Does what ApplySparse() left to do for elements [begin, end).
  void FinishSparse(const PreparedUpdate& update, int64_t begin, int64_t end);
  // Applies the variable's constraint to these rows, after a gradient.
  void Constrain(const PreparedUpdate& update, int64_t row_begin,
                 int64_t row_end);
  absl::Status Mismatch(const TensorType& expected,
                        const TensorType& received) const;

  const std::unique_ptr<const proto::ShardSpec> spec_;
  const uint32_t handle_;
  const TensorType type_;
  const int64_t row_count_;
  const int64_t row_elements_;
  int64_t rows_per_stripe_;  // Constant after construction.
  int stripe_count_;         // Constant after construction.
  int64_t rows_per_block_;   // Constant after construction.
  int blocks_per_stripe_;    // Constant after construction.

  std::vector<Stripe> stripes_;
  // By stripe: the tickets drawn. Only DrawTickets() uses it.
  std::vector<int64_t> drawn_counts_;
  Tensor value_;

  mutable absl::Mutex slots_mutex_;
  // True from the first gradient until DropSlots().
  bool has_slots_ ABSL_GUARDED_BY(slots_mutex_) = false;
  // By slot. While has_slots_ is false, the restored slots.
  std::vector<SlotSpec> slot_specs_ ABSL_GUARDED_BY(slots_mutex_);
  // Slots that begin as copies of the variable and are not filled. The first
  // update with a ticket fills them, so that their content depends on the order
  // of the tickets only.
  std::vector<int> slots_to_fill_ ABSL_GUARDED_BY(slots_mutex_);
  // False if slots_to_fill_ is empty.
  std::atomic<bool> has_slots_to_fill_{false};
  std::vector<Tensor> slots_;

  // The snapshots, some of which have expired. Changes only while no update is
  // running.
  std::vector<std::weak_ptr<FrozenRows>> frozen_;

  std::atomic<int64_t> version_;
  std::atomic<int64_t> update_count_{0};
};

}  // namespace muster

#endif  // PS_SHARD_VARIABLE_H_
