// The part of ParameterShard that records its changes and repeats them.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/compute/variables/update_kind.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/core/tensor/tensor_codec.h"
#include "proto/parameter_server.pb.h"
#include "proto/server_log.pb.h"
#include "ps/client/wire_update_kind.h"
#include "ps/log/change_recorder.h"
#include "ps/log/log_file.h"
#include "ps/parameter_shard.h"
#include "ps/slab.h"

namespace muster {
namespace {

// As many as CheckpointHandler keeps.
constexpr size_t kRestoredSnapshotsMax = 4;

absl::Status DoesNotFit(absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat("a record does not fit the records before it: ", what));
}

// Returns the tensors of a record, which share its memory.
absl::StatusOr<std::vector<ReceivedTensor>> TensorsOf(
    const ServerLogEntry& record) {
  const proto::ExchangeRequest& request = record.message.exchange();
  if (request.tensor_dtypes_size() != request.tensor_ranks_size()) {
    return DoesNotFit("it has other numbers of types and ranks");
  }
  std::vector<ReceivedTensor> tensors;
  absl::Span<const uint8_t> bytes = record.bytes;
  int next_dim = 0;
  for (int i = 0; i < request.tensor_dtypes_size(); ++i) {
    TensorType type;
    type.dtype = static_cast<DType>(request.tensor_dtypes(i));
    if (!IsKnownDType(request.tensor_dtypes(i)) ||
        type.dtype == DType::kString) {
      return DoesNotFit("it has a tensor of an unknown type");
    }
    const int rank = request.tensor_ranks(i);
    if (rank < 0 || rank > request.tensor_dims_size() - next_dim) {
      return DoesNotFit("it lacks dimensions of a tensor");
    }
    std::vector<int64_t> dims;
    for (int dim = 0; dim < rank; ++dim) {
      dims.push_back(request.tensor_dims(next_dim++));
    }
    type.shape = Shape(dims);
    const size_t size_bytes = type.shape.element_count() * SizeOf(type.dtype);
    if (size_bytes > bytes.size()) {
      return DoesNotFit("it lacks bytes of a tensor");
    }
    tensors.emplace_back(std::move(type),
                         absl::InlinedVector<MessageSlice, 1>{
                             MessageSlice{.data = bytes.data(),
                                          .size_bytes = size_bytes,
                                          .owner = record.owner}});
    bytes.remove_prefix(size_bytes);
  }
  return tensors;
}

// Returns the number of tensors that the updates of an exchange have.
size_t UpdateTensorCount(const proto::ExchangeRequest& request) {
  size_t count = 0;
  for (const int kind : request.update_kinds()) {
    const auto known = UpdateKindOf(static_cast<proto::UpdateKind>(kind));
    count += known.has_value() && TakesIndices(*known) ? 2 : 1;
  }
  return count;
}

}  // namespace

// ---- Recording.

void ParameterShard::SetRecorder(ChangeRecorder* recorder) {
  absl::MutexLock lock(&mutex_);
  recorder_ = recorder;
}

absl::Status ParameterShard::Record(const proto::ServerLogRecord& record) {
  return recorder_ == nullptr ? absl::OkStatus() : recorder_->Append(record);
}

absl::Status ParameterShard::RecordUpdates(
    const proto::ExchangeRequest& request,
    absl::Span<const ReceivedTensor> tensors) {
  if (recorder_ == nullptr || !recorder_->is_recording()) {
    return absl::OkStatus();
  }
  proto::ServerLogRecord record;
  proto::ExchangeRequest* const recorded = record.mutable_exchange();
  recorded->set_step_id(request.step_id());
  recorded->set_exchange_index(request.exchange_index());
  recorded->set_low_water_mark(request.low_water_mark());
  *recorded->mutable_update_handles() = request.update_handles();
  *recorded->mutable_update_kinds() = request.update_kinds();
  std::vector<absl::Span<const uint8_t>> pieces;
  for (const ReceivedTensor& tensor :
       tensors.subspan(0, UpdateTensorCount(request))) {
    recorded->add_tensor_dtypes(static_cast<int>(tensor.type().dtype));
    recorded->add_tensor_ranks(tensor.type().shape.rank());
    for (const int64_t dim : tensor.type().shape.dims()) {
      recorded->add_tensor_dims(dim);
    }
    for (const MessageSlice& slice : tensor.pieces()) {
      pieces.emplace_back(slice.data, slice.size_bytes);
    }
  }
  return recorder_->Append(std::move(record), pieces);
}

absl::Status ParameterShard::RecordMark(uint64_t low_water_mark) {
  proto::ServerLogRecord record;
  record.set_low_water_mark(low_water_mark);
  return Record(record);
}

absl::Status ParameterShard::RecordUnlogged(absl::string_view what) {
  absl::MutexLock lock(&mutex_);
  proto::ServerLogRecord record;
  record.set_unlogged_change(std::string(what));
  RETURN_IF_ERROR(Record(record));
  if (recorder_ != nullptr) recorder_->RequestSnapshot();
  return absl::OkStatus();
}

absl::StatusOr<ParameterShard::RecordedState> ParameterShard::FreezeForRecords(
    absl::FunctionRef<absl::Status(int64_t size_bytes)> at_freeze) {
  RecordedState state;
  // No exchange is in progress, because each holds this lock until it ends.
  absl::MutexLock lock(&mutex_);
  if (restore_count_ > 0) {
    return absl::FailedPreconditionError(
        "cannot take a snapshot while variables are being restored");
  }
  // Freezing fills slots. A process that repeats the records before this
  // snapshot has to fill them at the same place.
  proto::ServerLogRecord record;
  record.mutable_freeze();
  RETURN_IF_ERROR(Record(record));
  state.frozen = FreezeLocked();
  state.optimizers = optimizers_;
  state.pushes = ledger_.List(&state.low_water_mark);
  state.generation = generation_;
  state.update_count = update_count_.load(std::memory_order_relaxed);
  state.handle_count = static_cast<int64_t>(variables_.size());
  for (const FrozenShard::Variable& entry : state.frozen->variables) {
    state.size_bytes += static_cast<int64_t>(entry.variable->size_bytes()) *
                        entry.frozen.rows->array_count();
  }
  RETURN_IF_ERROR(at_freeze(state.size_bytes));
  return state;
}

// ---- Repeating.

absl::Status ParameterShard::Replay(const ServerLogEntry& record) {
  const proto::ServerLogRecord& message = record.message;
  using Change = proto::ServerLogRecord::ChangeCase;
  switch (message.change_case()) {
    case Change::kExchange:
      return ReplayUpdates(record);
    case Change::kCreate:
      return Create(message.create()).status();
    case Change::kSetOptimizer:
      return SetOptimizer(message.set_optimizer());
    case Change::kAssignAverages:
      return AssignAverages();
    case Change::kRollBack:
      return RollBack(message.roll_back().generation(),
                      message.roll_back().low_water_mark());
    case Change::kLowWaterMark:
      ledger_.AdvanceLowWaterMark(message.low_water_mark());
      return absl::OkStatus();
    case Change::kFreeze:
      return ReplayFreeze(message);
    case Change::kVariable:
      return ReplayVariable(message);
    case Change::kBlock:
      return ReplayBlock(record);
    case Change::kLedger: {
      const proto::ServerLogLedger& ledger = message.ledger();
      if (ledger.step_ids_size() != ledger.exchange_indexes_size()) {
        return DoesNotFit("it has other numbers of steps and exchanges");
      }
      ledger_.AdvanceLowWaterMark(ledger.low_water_mark());
      for (int i = 0; i < ledger.step_ids_size(); ++i) {
        ledger_.Restore({ledger.step_ids(i), ledger.exchange_indexes(i)});
      }
      return absl::OkStatus();
    }
    case Change::kSnapshotEnd: {
      const proto::ServerLogSnapshotEnd& end = message.snapshot_end();
      absl::MutexLock lock(&mutex_);
      generation_ = end.generation();
      update_count_.store(end.update_count(), std::memory_order_relaxed);
      if (end.handle_count() > static_cast<int64_t>(variables_.size()) &&
          end.handle_count() <= options_.variable_count_max) {
        variables_.resize(end.handle_count());
      }
      return absl::OkStatus();
    }
    case Change::kJob:
      return absl::OkStatus();
    default:
      return DoesNotFit("its kind is not known");
  }
}

absl::Status ParameterShard::NoteSnapshotEnded(uint64_t snapshot_id) {
  absl::MutexLock lock(&mutex_);
  proto::ServerLogRecord record;
  record.mutable_freeze()->add_dropped_snapshot_ids(snapshot_id);
  return Record(record);
}

absl::Status ParameterShard::ReplayFreeze(
    const proto::ServerLogRecord& record) {
  const proto::FreezeRequest& freeze = record.freeze();
  if (freeze.dropped_snapshot_ids_size() > 0) {
    std::erase_if(restored_snapshots_, [&](const auto& snapshot) {
      return snapshot->snapshot_id == freeze.dropped_snapshot_ids(0);
    });
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(std::unique_ptr<FrozenShard> frozen,
                   Freeze(freeze.snapshot_id()));
  // Others fill slots only.
  if (frozen->snapshot_id == 0) return absl::OkStatus();
  restored_snapshots_.push_back(std::move(frozen));
  if (restored_snapshots_.size() > kRestoredSnapshotsMax) {
    restored_snapshots_.erase(restored_snapshots_.begin());
  }
  return absl::OkStatus();
}

absl::Status ParameterShard::ReplayUpdates(const ServerLogEntry& record) {
  const proto::ExchangeRequest& request = record.message.exchange();
  ASSIGN_OR_RETURN(const std::vector<ReceivedTensor> tensors,
                   TensorsOf(record));
  absl::ReaderMutexLock lock(&mutex_);
  ShardExchange exchange({.variables = variables_,
                          .rules = &rules_,
                          .order = &order_,
                          .answer_bytes_max = options_.answer_bytes_max,
                          .pool = &pool_},
                         request, {});
  RETURN_IF_ERROR(exchange.Check(tensors));
  if (!exchange.has_updates()) return DoesNotFit("it has no updates");
    // Only pushes that were applied are recorded. The mark may have passed this
    // one before it was.
#ifndef MUSTER_PLANT_FORGOTTEN_PUSHES
  ledger_.Restore({request.step_id(), request.exchange_index()});
#endif
  ledger_.AdvanceLowWaterMark(request.low_water_mark());
  RETURN_IF_ERROR(exchange.ApplyUpdates().status());
  update_count_.fetch_add(1, std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::Status ParameterShard::ReplayVariable(
    const proto::ServerLogRecord& record) {
  const proto::ServerLogVariable& stored = record.variable();
  const proto::ShardSpec& spec = stored.spec();
  ASSIGN_OR_RETURN(const TensorType type, ShardType(spec));
  absl::MutexLock lock(&mutex_);
  const uint32_t handle = stored.handle();
  if (handle >= static_cast<uint32_t>(options_.variable_count_max) ||
      (handle < variables_.size() && variables_[handle] != nullptr)) {
    return DoesNotFit(absl::StrCat("handle ", handle, " is in use"));
  }
  const bool is_whole = IsWhole(spec);
  RETURN_IF_ERROR(rules_.CheckNew(spec.variable().name(), type, is_whole));
  // After the check, because the type may be that of a damaged record.
  ASSIGN_OR_RETURN(Tensor value, AllocateSlab(type));
  if (handle >= variables_.size()) variables_.resize(handle + 1);
  auto variable =
      std::make_shared<ShardVariable>(spec, handle, std::move(value));
  rules_.Add(handle, spec.variable().name(), type, is_whole);
  const std::vector<std::string> slots(stored.slot_names().begin(),
                                       stored.slot_names().end());
  const UpdateRule* const rule =
      stored.has_slots() ? rules_.Of(handle).get() : nullptr;
  if (stored.has_slots() && rule == nullptr) {
    return DoesNotFit(absl::StrCat("variable \"", spec.shard_name(),
                                   "\" has slots and no optimizer"));
  }
  if (stored.has_slots() || !slots.empty()) {
    RETURN_IF_ERROR(variable->PrepareSlots(rule, slots));
  }
  if (variable->slot_names() != slots) {
    return DoesNotFit(
        absl::StrCat("variable \"", spec.shard_name(), "\" has other slots"));
  }
  variable->FinishRestore(stored.update_count(), stored.version());
  handles_[spec.shard_name()] = handle;
  variables_[handle] = std::move(variable);
  return absl::OkStatus();
}

absl::Status ParameterShard::ReplayBlock(const ServerLogEntry& record) {
  const proto::ServerLogBlock& block = record.message.block();
  absl::ReaderMutexLock lock(&mutex_);
  if (block.handle() >= variables_.size() ||
      variables_[block.handle()] == nullptr) {
    return DoesNotFit("a block has no variable");
  }
  ShardVariable& variable = *variables_[block.handle()];
  const auto size_bytes = static_cast<int64_t>(record.bytes.size());
  if (block.array() < 0 ||
      block.array() > static_cast<int>(variable.slot_names().size()) ||
      block.offset_bytes() < 0 ||
      block.offset_bytes() + size_bytes >
          static_cast<int64_t>(variable.size_bytes())) {
    return DoesNotFit("a block is outside of its variable");
  }
  variable.Overwrite(block.array(), block.offset_bytes(), record.bytes);
  return absl::OkStatus();
}

}  // namespace muster
