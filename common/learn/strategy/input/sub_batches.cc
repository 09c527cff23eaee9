#include "common/learn/strategy/input/sub_batches.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/shape.h"
#include "common/learn/strategy/input/rebatch.h"

namespace muster {
namespace {

// Batches kept for reuse of their memory: as many as a default prefetch buffer
// and its consumer hold slices of. Beyond that, memory is not reused.
constexpr size_t kPooledBatchCountMax = 8;

// The rows of an element's components, which must be equally many.
absl::StatusOr<int64_t> RowCountOf(const Element& element) {
  int64_t row_count = -1;
  for (size_t c = 0; c < element.size(); ++c) {
    const Shape& shape = element[c].shape();
    if (shape.rank() == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("component ", c, " of a batch is ",
                       element[c].type().ToString(), " and has no rows"));
    }
    if (row_count < 0) row_count = shape.dim(0);
    if (shape.dim(0) == row_count) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "component 0 of a batch has ", row_count, " rows and component ", c,
        " has ", shape.dim(0), "; expected as many in all"));
  }
  return std::max<int64_t>(0, row_count);
}

class SubBatchIterator final : public DistributedIterator {
 public:
  SubBatchIterator(std::unique_ptr<DatasetIterator> input, ShardingPlan plan)
      : input_(std::move(input)),
        plan_(std::move(plan)),
        first_replica_(plan_.placement.worker_index *
                       plan_.placement.replicas_per_worker) {}

  absl::StatusOr<bool> Next(std::vector<ReplicaBatch>* batches) override {
    if (!status_.ok()) return status_;
    batches->resize(plan_.placement.replicas_per_worker);
    absl::StatusOr<bool> more = Draw(batches);
    status_ = more.status();
    return more;
  }

 private:
  absl::StatusOr<bool> Draw(std::vector<ReplicaBatch>* batches) {
    switch (plan_.division) {
      case Division::kNone:
        return DrawInTurn(batches);
      case Division::kOneStep:
        return DrawOneStep(batches);
      case Division::kManySteps:
        return DrawPartOfBatch(batches);
    }
    return absl::InternalError("unknown division");
  }

  absl::StatusOr<bool> DrawInTurn(std::vector<ReplicaBatch>* batches) {
    bool drew = false;
    int64_t size = plan_.batch_size;
    for (size_t i = 0; i < batches->size(); ++i) {
      ReplicaBatch& batch = (*batches)[i];
      ASSIGN_OR_RETURN(const bool more, input_->Next(&batch.element));
      if (!more) {
        MakeEmpty(&batch);
        continue;
      }
      drew = true;
      ASSIGN_OR_RETURN(batch.example_count, ExampleCountOf(batch.element));
      Remember(batch.element);
      size = std::max(size, batch.example_count);
      batch.example_offset = (first_replica_ + static_cast<int>(i)) * size;
    }
    return drew;
  }

  // A single replica may have elements that are not batches.
  absl::StatusOr<int64_t> ExampleCountOf(const Element& element) const {
    if (plan_.placement.replica_count() > 1) return RowCountOf(element);
    const bool has_rows = !element.empty() && element[0].shape().rank() > 0;
    return has_rows ? element[0].shape().dim(0) : 1;
  }

  absl::StatusOr<bool> DrawOneStep(std::vector<ReplicaBatch>* batches) {
    Release(batches);
    ASSIGN_OR_RETURN(const bool more, DrawBatch());
    if (!more) return MakeAllEmpty(batches);
    const std::vector<RowRange> ranges =
        DivideBatch(plan_.rebatch_rule, plan_.batch_size, row_count_,
                    plan_.placement.replica_count());
    for (size_t i = 0; i < batches->size(); ++i) {
      const RowRange& range = ranges[first_replica_ + i];
      Slice(range, range.begin, &(*batches)[i]);
    }
    next_row_ = row_count_;
    return true;
  }

  absl::StatusOr<bool> DrawPartOfBatch(std::vector<ReplicaBatch>* batches) {
    Release(batches);
    if (next_row_ == row_count_) {
      ASSIGN_OR_RETURN(const bool more, DrawBatch());
      if (!more) return MakeAllEmpty(batches);
    }
    const std::vector<Share> shares = NextShares();
    for (size_t i = 0; i < batches->size(); ++i) {
      const int64_t end = std::min(next_row_ + shares[i].size, row_count_);
      Slice({next_row_, end}, shares[i].offset, &(*batches)[i]);
      next_row_ = end;
    }
    return true;
  }

  std::vector<Share> NextShares() {
    const InputPlacement& placement = plan_.placement;
    if (plan_.rebatch_rule != RebatchRule::kLegacy) {
      // Counted from the beginning of the data and not of the batch: workers
      // whose batches end at different steps still take different shares.
      return SharesOfStep(plan_.batch_size, placement.worker_count,
                          placement.worker_index, placement.replicas_per_worker,
                          step_++);
    }
    const int replica_count = placement.replica_count();
    const int64_t size = LegacySizes(row_count_, replica_count)[0];
    const int64_t full =
        LegacySizes(std::max(plan_.batch_size, row_count_), replica_count)[0];
    std::vector<Share> shares;
    for (int i = 0; i < placement.replicas_per_worker; ++i) {
      shares.push_back({.size = size, .offset = (first_replica_ + i) * full});
    }
    return shares;
  }

  // Makes the next element with rows the current batch.
  absl::StatusOr<bool> DrawBatch() {
    batch_ = nullptr;
    do {
      if (batch_ == nullptr) batch_ = FreeBatch();
      ASSIGN_OR_RETURN(const bool more, input_->Next(batch_));
      if (!more) {
        batch_->clear();
        row_count_ = next_row_ = 0;
        return false;
      }
      ASSIGN_OR_RETURN(row_count_, RowCountOf(*batch_));
      next_row_ = 0;
    } while (row_count_ == 0);
    Remember(*batch_);
    return true;
  }

  // A batch without remaining slices, so that the input can reuse its memory.
  Element* FreeBatch() {
    for (const auto& batch : pool_) {
      if (std::all_of(batch->begin(), batch->end(), [](const Tensor& tensor) {
            return tensor.IsSoleOwner();
          })) {
        return batch.get();
      }
    }
    if (pool_.size() < kPooledBatchCountMax) {
      return pool_.emplace_back(std::make_unique<Element>()).get();
    }
    std::rotate(pool_.begin(), pool_.begin() + 1, pool_.end());
    pool_.back()->clear();
    return pool_.back().get();
  }

  void Slice(const RowRange& rows, int64_t offset, ReplicaBatch* batch) const {
    if (rows.size() == 0) {
      MakeEmpty(batch);
      return;
    }
    batch->element.clear();
    for (const Tensor& component : *batch_) {
      batch->element.push_back(component.SliceRows(rows.begin, rows.end));
    }
    batch->example_count = rows.size();
    batch->example_offset = offset;
  }

  static void Release(std::vector<ReplicaBatch>* batches) {
    for (ReplicaBatch& batch : *batches) batch.element.clear();
  }

  // Extents that the types leave unknown are those of the last batch.
  void Remember(const Element& element) {
    last_shapes_.clear();
    for (const Tensor& tensor : element) last_shapes_.push_back(tensor.shape());
  }

  void MakeEmpty(ReplicaBatch* batch) const {
    batch->example_count = 0;
    batch->example_offset = 0;
    batch->element.clear();
    // A single replica does not wait for others, and stops.
    if (plan_.placement.replica_count() == 1) return;
    for (size_t c = 0; c < plan_.element_types.size(); ++c) {
      Shape shape = plan_.element_types[c].shape;
      shape.set_dim(0, 0);
      for (int axis = 1; axis < shape.rank(); ++axis) {
        if (shape.dim(axis) != Shape::kUnknown) continue;
        shape.set_dim(axis,
                      last_shapes_.empty() ? 1 : last_shapes_[c].dim(axis));
      }
      batch->element.push_back(Tensor(plan_.element_types[c].dtype, shape));
    }
  }

  bool MakeAllEmpty(std::vector<ReplicaBatch>* batches) const {
    for (ReplicaBatch& batch : *batches) MakeEmpty(&batch);
    return false;
  }

  const std::unique_ptr<DatasetIterator> input_;
  const ShardingPlan plan_;
  const int first_replica_;  // Among all.
  absl::Status status_;
  std::vector<std::unique_ptr<Element>> pool_;
  Element* batch_ = nullptr;  // The current one, in pool_.
  int64_t row_count_ = 0;     // Of the current batch.
  int64_t next_row_ = 0;      // The first row not yet assigned to a replica.
  int64_t step_ = 0;
  std::vector<Shape> last_shapes_;
};

}  // namespace

std::unique_ptr<DistributedIterator> DivideAmongReplicas(
    std::unique_ptr<DatasetIterator> input, ShardingPlan plan) {
  return std::make_unique<SubBatchIterator>(std::move(input), std::move(plan));
}

}  // namespace muster
