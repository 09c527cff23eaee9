#include "ps/parameter_shard.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/compute/variables/constraint.h"
#include "common/compute/variables/initial_value.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor_codec.h"
#include "common/net/rpc/fault_point.h"
#include "proto/parameter_server.pb.h"
#include "proto/server_log.pb.h"
#include "ps/client/earlier_generation.h"
#include "ps/log/change_recorder.h"
#include "ps/shard_exchange.h"
#include "ps/slab.h"

namespace muster {
namespace {

constexpr size_t kNameBytesMax = 1024;

}  // namespace

absl::StatusOr<TensorType> ParameterShard::ShardType(
    const proto::ShardSpec& spec) {
  RETURN_IF_ERROR(ValidateVariableSpec(spec.variable()));
  if (spec.shard_name().empty() || spec.shard_name().size() > kNameBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a shard's name has ", spec.shard_name().size(),
                     " bytes; expected 1 to ", kNameBytesMax));
  }
  ASSIGN_OR_RETURN(const DType dtype, DecodeDType(spec.variable().dtype()));
  ASSIGN_OR_RETURN(Shape shape, DecodeShape(spec.variable().shape(),
                                            /*allow_unknown=*/false));
  const int64_t row_count = shape.rank() == 0 ? 1 : shape.dim(0);
  if (spec.row_begin() < 0 || spec.row_begin() > spec.row_end() ||
      spec.row_end() > row_count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "shard \"", spec.shard_name(), "\" has rows ", spec.row_begin(), " to ",
        spec.row_end(), " of a variable with ", row_count, " rows"));
  }
  const proto::Constraint& constraint = spec.variable().constraint();
  if (NeedsAllRows(constraint, shape.rank()) &&
      spec.row_end() - spec.row_begin() != row_count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "shard \"", spec.shard_name(), "\" has rows ", spec.row_begin(), " to ",
        spec.row_end(), " of ", row_count, ", but constraint {",
        constraint.ShortDebugString(),
        "} has norms over all rows; do not partition the variable"));
  }
  if (shape.rank() == 0) {
    if (spec.row_begin() != 0 || spec.row_end() != 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "shard \"", spec.shard_name(), "\" of a scalar must have one row"));
    }
  } else {
    shape.set_dim(0, spec.row_end() - spec.row_begin());
  }
  return TensorType{dtype, std::move(shape)};
}

bool ParameterShard::IsWhole(const proto::ShardSpec& spec) {
  const auto& dim = spec.variable().shape().dim();
  return dim.empty() || spec.row_end() - spec.row_begin() == dim.Get(0);
}

ParameterShard::ParameterShard(const Options& options)
    : options_(options),
      aside_(std::make_shared<AsideBudget>(
          options.frozen_bytes_max > 0
              ? options.frozen_bytes_max
              : std::numeric_limits<int64_t>::max() / 2)),
      pool_("ps_apply", std::max(0, options.thread_count - 1)),
      ledger_(options.remembered_push_count_max),
      rules_(options.memory_bytes_max) {}

ParameterShard::~ParameterShard() = default;

absl::StatusOr<ShardVariable*> ParameterShard::FindExisting(
    const proto::ShardSpec& spec, const TensorType& type) const {
  const auto found = handles_.find(spec.shard_name());
  if (found == handles_.end()) return nullptr;
  ShardVariable* const existing = variables_[found->second].get();
  if (existing->type() == type &&
      existing->spec().row_begin() == spec.row_begin()) {
    RETURN_IF_ERROR(
        CheckSameConstraint(existing->spec().variable(), spec.variable()));
    return existing;
  }
  return absl::AlreadyExistsError(absl::StrCat(
      "variable \"", spec.shard_name(), "\" exists as ",
      existing->type().ToString(), " from row ", existing->spec().row_begin(),
      "; requested ", type.ToString(), " from row ", spec.row_begin()));
}

absl::StatusOr<uint32_t> ParameterShard::Create(const proto::ShardSpec& spec) {
  proto::CreateRequest request;
  *request.mutable_spec() = spec;
  return Create(request);
}

absl::StatusOr<uint32_t> ParameterShard::Create(
    const proto::CreateRequest& request) {
  const proto::ShardSpec& spec = request.spec();
  ASSIGN_OR_RETURN(const TensorType type, ShardType(spec));
  absl::MutexLock creating(&create_mutex_);
  ShardVariable* existing = nullptr;
  {
    absl::ReaderMutexLock lock(&mutex_);
    ASSIGN_OR_RETURN(existing, FindExisting(spec, type));
  }
  if (existing != nullptr) {
    if (request.starts_over()) RETURN_IF_ERROR(StartOver(existing, request));
    return existing->handle();
  }
  {
    absl::ReaderMutexLock lock(&mutex_);
    if (variables_.size() >= static_cast<size_t>(options_.variable_count_max)) {
      return absl::ResourceExhaustedError(
          absl::StrCat("this server already has ", variables_.size(),
                       " variables, which is the limit"));
    }
    RETURN_IF_ERROR(
        rules_.CheckNew(spec.variable().name(), type, IsWhole(spec)));
  }
  ASSIGN_OR_RETURN(Tensor value, AllocateSlab(type));
  if (!request.will_be_restored()) {
    RETURN_IF_ERROR(FillInitialValue(spec.variable(), spec.row_begin(),
                                     spec.row_end(), &value));
  }
  return Add(request, std::move(value));
}

absl::StatusOr<uint32_t> ParameterShard::Add(
    const proto::CreateRequest& request, Tensor value) {
  proto::ShardSpec kept_spec = request.spec();
  // The initial value may be large and is no longer needed.
  if (kept_spec.variable().initializer().has_value()) {
    kept_spec.mutable_variable()->clear_initializer();
  }
  const TensorType type = value.type();
  absl::MutexLock lock(&mutex_);
  size_t handle = variables_.size();
  if (request.handle_plus_one() != 0) {
    handle = request.handle_plus_one() - 1;
    if (handle >= static_cast<size_t>(options_.variable_count_max) ||
        (handle < variables_.size() && variables_[handle] != nullptr)) {
      return absl::AlreadyExistsError(absl::StrCat(
          "variable \"", request.spec().shard_name(), "\" cannot have handle ",
          handle, ": it is in use or exceeds the limit"));
    }
  }
  proto::ServerLogRecord record;
  *record.mutable_create() = request;
  record.mutable_create()->set_handle_plus_one(static_cast<uint32_t>(handle) +
                                               1);
  RETURN_IF_ERROR(Record(record));
  if (handle >= variables_.size()) variables_.resize(handle + 1);
  handles_[request.spec().shard_name()] = static_cast<uint32_t>(handle);
  variables_[handle] = std::make_shared<ShardVariable>(
      kept_spec, static_cast<uint32_t>(handle), std::move(value), generation_);
  rules_.Add(static_cast<uint32_t>(handle), request.spec().variable().name(),
             type, IsWhole(request.spec()));
  return static_cast<uint32_t>(handle);
}

absl::Status ParameterShard::StartOver(ShardVariable* variable,
                                       const proto::CreateRequest& request) {
  const proto::ShardSpec& spec = request.spec();
  ASSIGN_OR_RETURN(Tensor value, AllocateSlab(variable->type()));
  RETURN_IF_ERROR(FillInitialValue(spec.variable(), spec.row_begin(),
                                   spec.row_end(), &value));
  BeginRestore();
  variable->Overwrite(0, 0, {value.raw_data(), value.size_bytes()});
  variable->DropSlots();
  variable->FinishRestore(/*update_count=*/0);
  absl::MutexLock lock(&mutex_);
  --restore_count_;
  rules_.Reset(spec.variable().name());
  optimizers_.Reset(spec.variable().name());
  proto::ServerLogRecord record;
  *record.mutable_create() = request;
  return Record(record);
}

absl::Status ParameterShard::SetOptimizer(const proto::Optimizer& optimizer) {
  proto::SetOptimizerRequest request;
  *request.mutable_optimizer() = optimizer;
  request.set_is_default(true);
  return SetOptimizer(request);
}

absl::Status ParameterShard::SetOptimizer(
    const proto::SetOptimizerRequest& request) {
  ASSIGN_OR_RETURN(
      std::shared_ptr<const UpdateRule> rule,
      UpdateRule::Create(request.optimizer(),
                         std::max<int64_t>(1, request.gradients_per_step())));
  const std::vector<std::string> variables(request.variables().begin(),
                                           request.variables().end());
  absl::MutexLock creating(&create_mutex_);
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(rules_.Set(std::move(rule), variables, request.is_default()));
  optimizers_.Add(request);
  proto::ServerLogRecord record;
  *record.mutable_set_optimizer() = request;
  return Record(record);
}

absl::Status ParameterShard::AssignAverages() {
  // No exchange is in progress, because each holds this lock until it ends.
  absl::MutexLock lock(&mutex_);
  proto::ServerLogRecord record;
  record.mutable_assign_averages();
  RETURN_IF_ERROR(Record(record));
  for (const auto& variable : variables_) {
    if (variable != nullptr) variable->AssignAverage();
  }
  return absl::OkStatus();
}

absl::Status ParameterShard::Exchange(const proto::ExchangeRequest& request,
                                      absl::Span<const ReceivedTensor> tensors,
                                      proto::ExchangeResponse* response,
                                      std::vector<Tensor>* answers,
                                      absl::Span<const AnswerPlace> places) {
  const PushId id = {request.step_id(), request.exchange_index()};
  exchange_count_.fetch_add(1, std::memory_order_relaxed);
  absl::ReaderMutexLock lock(&mutex_);
  if (request.generation() != generation_) {
    return AsOfEarlierGeneration(absl::FailedPreconditionError(
        absl::StrCat("got an exchange of generation ", request.generation(),
                     ", but training was rolled back and is in generation ",
                     generation_, "; the caller's result is discarded")));
  }
  ShardExchange exchange({.variables = variables_,
                          .rules = &rules_,
                          .order = &order_,
                          .answer_bytes_max = options_.answer_bytes_max,
                          .pool = &pool_},
                         request, places);
  RETURN_IF_ERROR(exchange.Check(tensors));
  int64_t received_bytes = 0;
  for (const ReceivedTensor& tensor : tensors) {
    received_bytes += static_cast<int64_t>(tensor.size_bytes());
  }
  bytes_received_.fetch_add(received_bytes, std::memory_order_relaxed);
  bool is_mark_recorded =
      !ledger_.AdvanceLowWaterMark(request.low_water_mark());
  if (exchange.has_updates()) {
    RETURN_IF_ERROR(FaultPoint("ps.before_apply"));
    ASSIGN_OR_RETURN(const bool is_first, ledger_.Claim(id));
    response->set_was_repeat(!is_first);
    if (!is_first) {
      repeat_count_.fetch_add(1, std::memory_order_relaxed);
    } else {
      const absl::Status applied =
          exchange
              .ApplyUpdates([&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
                return RecordUpdates(request, tensors);
              })
              .status();
      if (!applied.ok()) {
        ledger_.GiveUp(id);
        return applied;
      }
      update_count_.fetch_add(1, std::memory_order_relaxed);
      ledger_.Finish(id);
      is_mark_recorded = true;
    }
    RETURN_IF_ERROR(FaultPoint("ps.after_apply_before_ack"));
  }
  if (!is_mark_recorded) RETURN_IF_ERROR(RecordMark(request.low_water_mark()));
  const size_t sent_bytes = exchange.Answer(response, answers);
  bytes_sent_.fetch_add(static_cast<int64_t>(sent_bytes),
                        std::memory_order_relaxed);
  return absl::OkStatus();
}

// ---- Saving, restoring and rolling back.

absl::StatusOr<std::unique_ptr<FrozenShard>> ParameterShard::Freeze(
    uint64_t snapshot_id) {
  // No exchange is in progress, because each holds this lock until it ends.
  absl::MutexLock lock(&mutex_);
  if (restore_count_ > 0) {
    return absl::FailedPreconditionError(
        "cannot take a snapshot while variables are being restored");
  }
  proto::ServerLogRecord record;
  record.mutable_freeze()->set_snapshot_id(snapshot_id);
  RETURN_IF_ERROR(Record(record));
  std::unique_ptr<FrozenShard> frozen = FreezeLocked();
  frozen->snapshot_id = snapshot_id;
  return frozen;
}

std::unique_ptr<FrozenShard> ParameterShard::FreezeLocked() {
  auto frozen = std::make_unique<FrozenShard>();
  for (size_t i = 0; i < variables_.size(); ++i) {
    const auto& variable = variables_[i];
    if (variable == nullptr) continue;
    const auto rule = rules_.Of(static_cast<uint32_t>(i));
    frozen->variables.push_back(
        {variable, variable->Freeze(aside_),
         rule == nullptr ? 1 : rule->gradients_per_step()});
  }
  return frozen;
}

std::vector<RestoredVariable> ParameterShard::ListContents() const {
  absl::ReaderMutexLock lock(&mutex_);
  std::vector<RestoredVariable> contents;
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (variables_[i] == nullptr) continue;
    contents.push_back({variables_[i], rules_.Of(static_cast<uint32_t>(i))});
  }
  return contents;
}

absl::Status ParameterShard::Verify(const TensorBundleReader& reader,
                                    bool values_only) const {
  return VerifyStored(reader, ListContents(), values_only);
}

absl::Status ParameterShard::Restore(const TensorBundleReader& reader,
                                     bool values_only) {
  const std::vector<RestoredVariable> contents = ListContents();
  BeginRestore();
  absl::Status status = RecordUnlogged("a restore of variables");
  if (status.ok()) status = RestoreVariables(reader, contents, values_only);
  EndRestore();
  return status;
}

void ParameterShard::BeginRestore() {
  absl::MutexLock lock(&mutex_);
  ++restore_count_;
  for (const auto& variable : variables_) {
    if (variable != nullptr) variable->Thaw();
  }
}

void ParameterShard::EndRestore() {
  absl::MutexLock lock(&mutex_);
  --restore_count_;
}

absl::Status ParameterShard::RollBack(uint64_t generation,
                                      uint64_t low_water_mark) {
  absl::MutexLock lock(&mutex_);
  if (generation > ShardVariable::kGenerationMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("got generation ", generation, "; expected at most ",
                     ShardVariable::kGenerationMax));
  }
  if (generation < generation_) {
    return absl::FailedPreconditionError(
        absl::StrCat("training is in generation ", generation_,
                     " and cannot be rolled back to generation ", generation));
  }
  // A repeated request must not forget pushes that were applied after the
  // first.
  if (generation == generation_) return absl::OkStatus();
  proto::ServerLogRecord record;
  record.mutable_roll_back()->set_generation(generation);
  record.mutable_roll_back()->set_low_water_mark(low_water_mark);
  RETURN_IF_ERROR(Record(record));
  generation_ = generation;
#ifndef MUSTER_PLANT_KEPT_LEDGER
  ledger_.Clear();
#endif
  ledger_.AdvanceLowWaterMark(low_water_mark);
  return absl::OkStatus();
}

// ---- Status.

ParameterShard::Activity ParameterShard::activity() const {
  Activity activity = {
      .exchange_count = exchange_count(),
      .update_count = update_count_.load(std::memory_order_relaxed),
      .repeat_count = repeat_count_.load(std::memory_order_relaxed),
      .bytes_received = bytes_received_.load(std::memory_order_relaxed),
      .bytes_sent = bytes_sent_.load(std::memory_order_relaxed)};
  absl::ReaderMutexLock lock(&mutex_);
  activity.variable_bytes = static_cast<int64_t>(rules_.value_bytes());
  activity.variable_count = static_cast<int64_t>(handles_.size());
  return activity;
}

proto::DescribeResponse ParameterShard::Describe() const {
  proto::DescribeResponse description;
  absl::ReaderMutexLock lock(&mutex_);
  description.set_generation(generation_);
  for (const auto& variable : variables_) {
    if (variable == nullptr) continue;
    proto::ShardDescription* shard = description.add_shards();
    *shard->mutable_spec() = variable->spec();
    shard->set_handle(variable->handle());
    shard->set_version(variable->version());
    shard->set_update_count(variable->update_count());
  }
  description.set_memory_bytes(rules_.value_bytes() + rules_.slot_bytes());
  description.set_memory_bytes_max(options_.memory_bytes_max);
  description.set_remembered_exchange_count(ledger_.remembered_count());
  description.set_newest_step_id(ledger_.newest_step_id());
  return description;
}

void ParameterShard::Clear(uint64_t state_id) {
  absl::MutexLock creating(&create_mutex_);
  absl::MutexLock lock(&mutex_);
  handles_.clear();
  variables_.clear();
  rules_.Clear();
  optimizers_ = OptimizerRequests();
  generation_ = 0;
  ledger_.Clear();
  if (recorder_ == nullptr) return;
  const absl::Status begun = recorder_->BeginEmpty(state_id);
  if (!begun.ok()) LOG(WARNING) << "no log is kept: " << begun.message();
}

}  // namespace muster
