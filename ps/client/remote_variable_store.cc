#include "ps/client/remote_variable_store.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <numeric>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/compute/variables/clipping_session.h"
#include "common/compute/variables/loss_scale_session.h"
#include "common/compute/variables/variable_state.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/memory_limits.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/storage/disk.h"
#include "common/io/storage/object_url.h"
#include "proto/parameter_server.pb.h"
#include "proto/variable.pb.h"
#include "ps/client/exchange_batch.h"
#include "ps/client/remote_variable.h"
#include "ps/client/remote_variable_session.h"
#include "ps/client/server_group.h"
#include "ps/client/variable_directory.h"

namespace muster {
namespace {

size_t SegmentBytes(const RemoteVariableStore::Options& options) {
  if (!options.shared_memory) return 0;
  if (options.shared_memory_bytes_max > 0) {
    return options.shared_memory_bytes_max;
  }
  return AvailableMemoryBytes() / 4;
}

// Raises `mark` to `value`.
void Raise(std::atomic<uint64_t>* mark, uint64_t value) {
  uint64_t before = mark->load(std::memory_order_relaxed);
  while (before < value && !mark->compare_exchange_weak(
                               before, value, std::memory_order_acq_rel)) {
  }
}

class RemoteSnapshot final : public VariableSnapshot {
 public:
  RemoteSnapshot(RemoteVariableStore* store, FrozenSnapshot snapshot)
      : store_(store), snapshot_(std::move(snapshot)) {}

  const std::vector<Entry>& entries() const override {
    return snapshot_.entries();
  }
  // The scalar slots are on the servers.
  std::optional<double> ScalarSlot(absl::string_view,
                                   absl::string_view) const override {
    return std::nullopt;
  }
  absl::Status WriteShards(Disk*, absl::string_view prefix,
                           int shard_count) override {
    return store_->SaveFrozen(prefix, shard_count, snapshot_);
  }

 private:
  RemoteVariableStore* const store_;
  const FrozenSnapshot snapshot_;
};

// Servers may have another working directory.
absl::StatusOr<std::string> AbsolutePrefix(absl::string_view prefix) {
  if (IsObjectUrl(prefix)) return std::string(prefix);
  std::error_code error;
  const std::filesystem::path path =
      std::filesystem::absolute(std::string(prefix), error);
  if (error) return absl::ErrnoToStatus(error.value(), prefix);
  return path.lexically_normal().string();
}

// Checks which tasks belong to which server.
absl::Status CheckTasks(const RemoteVariableStore::Options& options) {
  const auto task_count = static_cast<int>(options.tasks.size());
  if (options.copy_count < 1 || task_count % options.copy_count != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        task_count, " ps tasks cannot hold ", options.copy_count,
        " copies of each server; expected a multiple of the copies"));
  }
  const std::vector<int>& serving = options.serving_tasks;
  const int server_count = task_count / options.copy_count;
  bool fits =
      serving.empty() || static_cast<int>(serving.size()) == server_count;
  for (size_t i = 0; i < serving.size() && fits; ++i) {
    fits = serving[i] >= 0 && serving[i] < task_count &&
           serving[i] % server_count == static_cast<int>(i);
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the tasks ", absl::StrJoin(serving, ", "), " cannot serve ",
                   server_count, " servers of ", task_count, " ps tasks"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RemoteVariableStore>> RemoteVariableStore::Open(
    Network* network, Options options) {
  if (options.tasks.empty()) {
    return absl::InvalidArgumentError(
        "variables on parameter servers need a parameter server: the cluster "
        "has no task of type ps");
  }
  RETURN_IF_ERROR(CheckTasks(options));
  std::unique_ptr<RemoteVariableStore> store(
      new RemoteVariableStore(network, std::move(options)));
  RETURN_IF_ERROR(store->directory_->Refresh());
  store->servers_->ShareMemory();
  return store;
}

RemoteVariableStore::RemoteVariableStore(Network* network, Options options)
    : servers_(std::make_unique<ServerGroup>(
          network,
          ServerGroup::Options{
              .tasks = std::move(options.tasks),
              .copy_count = options.copy_count,
              .serving_tasks = std::move(options.serving_tasks),
              .timeout = options.timeout,
              .retry_for = options.retry_for,
              .segment_bytes = SegmentBytes(options)})),
      directory_(std::make_unique<VariableDirectory>(
          servers_.get(), std::move(options.partitioner), options.placement)),
      marks_(std::make_unique<StepMarks>()),
      gradients_per_step_(options.gradients_per_step),
      update_gate_(options.update_gate) {
  servers_->SetGeneration(options.generation);
}

RemoteVariableStore::~RemoteVariableStore() = default;

int RemoteVariableStore::checkpoint_shard_count() const {
  return servers_->size();
}

absl::Status RemoteVariableStore::Create(const proto::VariableSpec& spec) {
  return directory_->Create(spec);
}

absl::Status RemoteVariableStore::StartOver(const proto::VariableSpec& spec) {
  RETURN_IF_ERROR(directory_->StartOver(spec));
  absl::MutexLock setting(&set_optimizer_mutex_);
  absl::MutexLock lock(&optimizer_mutex_);
  optimizers_.Reset(spec.name());
  return absl::OkStatus();
}

std::vector<proto::VariableSpec> RemoteVariableStore::List() const {
  return directory_->List();
}

absl::StatusOr<Tensor> RemoteVariableStore::Read(absl::string_view name) {
  ASSIGN_OR_RETURN(RemoteVariable * variable, directory_->Find(name));
  uint32_t exchange_index = 0;
  ExchangeBatch batch(servers_.get(), marks_.get(), /*step_id=*/0,
                      &exchange_index);
  batch.AddPull(variable);
  RETURN_IF_ERROR(batch.Send());
  return variable->value();
}

absl::Status RemoteVariableStore::Assign(absl::string_view name,
                                         const Tensor& value) {
  ASSIGN_OR_RETURN(RemoteVariable * variable, directory_->Find(name));
  if (value.type() != variable->type()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable \"", name, "\" is a ", variable->type().ToString(), "; a ",
        value.type().ToString(), " was to be assigned"));
  }
  uint32_t exchange_index = 0;
  ExchangeBatch batch(servers_.get(), marks_.get(), /*step_id=*/0,
                      &exchange_index);
  batch.AddDenseUpdate(*variable, UpdateKind::kAssign, value);
  return batch.Send();
}

absl::Status RemoteVariableStore::SetOptimizer(const Optimizer& optimizer) {
  proto::SetOptimizerRequest request;
  *request.mutable_optimizer() = optimizer.message();
  request.set_is_default(true);
  return SetOptimizer(std::move(request));
}

absl::Status RemoteVariableStore::SetOptimizerOf(
    absl::Span<const std::string> variables, const Optimizer& optimizer) {
  proto::SetOptimizerRequest request;
  *request.mutable_optimizer() = optimizer.message();
  request.mutable_variables()->Assign(variables.begin(), variables.end());
  return SetOptimizer(std::move(request));
}

absl::Status RemoteVariableStore::SetOptimizer(
    proto::SetOptimizerRequest request) {
  if (gradients_per_step_ > 1) {
    request.set_gradients_per_step(gradients_per_step_);
  }
  absl::MutexLock setting(&set_optimizer_mutex_);
  if (HasOptimizer(request)) return absl::OkStatus();
  OptimizerRequests before;
  {
    // Added before the servers carry it out: a server that does so and is then
    // replaced gets it again from RecoverServers().
    absl::MutexLock lock(&optimizer_mutex_);
    before = optimizers_;
    optimizers_.Add(request);
  }
  const absl::Status status = servers_->SetOptimizer(request);
  if (status.ok()) return status;
  absl::MutexLock lock(&optimizer_mutex_);
  optimizers_ = std::move(before);
  return status;
}

bool RemoteVariableStore::HasOptimizer(
    const proto::SetOptimizerRequest& request) {
  absl::MutexLock lock(&optimizer_mutex_);
  return optimizers_.Contains(request);
}

absl::Status RemoteVariableStore::AssignAverages() {
  return servers_->AssignAverages();
}

absl::StatusOr<std::vector<int64_t>> RemoteVariableStore::UpdateCounts(
    absl::Span<const std::string> names) {
  // Every shard counts every gradient, so the first shard has the count of the
  // variable.
  std::vector<const RemoteShard*> first_shards;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const RemoteVariable* variable, directory_->Find(name));
    first_shards.push_back(&variable->shards().front());
  }
  ASSIGN_OR_RETURN(const std::vector<proto::DescribeResponse> descriptions,
                   servers_->Describe());
  std::vector<absl::flat_hash_map<uint32_t, int64_t>> count_by_handle;
  for (const proto::DescribeResponse& server : descriptions) {
    auto& counts = count_by_handle.emplace_back();
    for (const auto& held : server.shards()) {
      counts[held.handle()] = held.update_count();
    }
  }
  std::vector<int64_t> counts;
  for (size_t i = 0; i < names.size(); ++i) {
    const RemoteShard& shard = *first_shards[i];
    const auto found = count_by_handle[shard.server].find(shard.handle);
    if (found == count_by_handle[shard.server].end()) {
      return absl::InternalError(
          absl::StrCat("variable \"", names[i],
                       "\" is missing on parameter server ", shard.server));
    }
    counts.push_back(found->second);
  }
  return counts;
}

absl::StatusOr<std::unique_ptr<VariableSnapshot>>
RemoteVariableStore::TakeSnapshot() {
  ASSIGN_OR_RETURN(FrozenSnapshot snapshot, Freeze(RandomIdentity()));
  return std::make_unique<RemoteSnapshot>(this, std::move(snapshot));
}

absl::StatusOr<FrozenSnapshot> RemoteVariableStore::Freeze(
    uint64_t snapshot_id) {
  const std::vector<uint64_t> dropped = dropped_snapshots_->Take();
  const absl::StatusOr<std::vector<proto::FreezeResponse>> frozen =
      servers_->Freeze(snapshot_id, dropped);
  if (!frozen.ok()) {
    // Some servers may have created the snapshot.
    dropped_snapshots_->Add({snapshot_id});
    dropped_snapshots_->Add(dropped);
    return frozen.status();
  }
  absl::flat_hash_map<std::string, VariableSnapshot::Entry> found;
  for (const proto::FreezeResponse& server : *frozen) {
    for (const auto& variable : server.variables()) {
      VariableSnapshot::Entry& entry = found[variable.name()];
      entry.variable = variable.name();
      entry.slots.assign(variable.slots().begin(), variable.slots().end());
      entry.update_count = variable.update_count();
    }
  }
  FrozenSnapshot::Entries entries;
  for (const RemoteVariable* variable : directory_->variables()) {
    const auto entry = found.find(variable->name());
    if (entry != found.end()) entries.push_back(std::move(entry->second));
  }
  return FrozenSnapshot(snapshot_id, std::move(entries), dropped_snapshots_);
}

absl::Status RemoteVariableStore::SaveFrozen(absl::string_view prefix,
                                             int shard_count,
                                             const FrozenSnapshot& snapshot) {
  if (shard_count < servers_->size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a checkpoint of ", shard_count, " shards has no room for ",
        "those of ", servers_->size(), " parameter servers"));
  }
  ASSIGN_OR_RETURN(const std::string path, AbsolutePrefix(prefix));
  return servers_->Save(path, shard_count, snapshot.id());
}

absl::Status RemoteVariableStore::CheckCanSave(absl::string_view prefix) {
  ASSIGN_OR_RETURN(const std::string path, AbsolutePrefix(prefix));
  return servers_->CheckCanSave(path);
}

absl::Status RemoteVariableStore::SaveShards(absl::string_view prefix,
                                             int shard_count) {
  ASSIGN_OR_RETURN(const FrozenSnapshot snapshot, Freeze(RandomIdentity()));
  return SaveFrozen(prefix, shard_count, snapshot);
}

absl::Status RemoteVariableStore::Restore(absl::string_view prefix,
                                          bool values_only) {
  ASSIGN_OR_RETURN(const std::string path, AbsolutePrefix(prefix));
  {
    // An error that all servers would report is reported once, from here.
    ASSIGN_OR_RETURN(const std::unique_ptr<TensorBundleReader> reader,
                     TensorBundleReader::Open(Disk::Real(), path));
    std::vector<VariableRows> variables;
    for (const RemoteVariable* variable : directory_->variables()) {
      if (!IsRestored(*reader, variable->spec(), values_only)) continue;
      variables.push_back(
          VariableRows::All(variable->name(), variable->type()));
    }
    RETURN_IF_ERROR(CheckVariables(*reader, variables));
  }
  RETURN_IF_ERROR(servers_->Restore(path, values_only, /*only_verifies=*/true));
  return servers_->Restore(path, values_only, /*only_verifies=*/false);
}

absl::Status RemoteVariableStore::RecoverServers(
    absl::Span<const ReplacedServer> returned, uint64_t generation,
    uint64_t low_water_mark, bool starts_over) {
  std::vector<int> places;
  for (const ReplacedServer& server : returned) places.push_back(server.server);
  if (starts_over) {
    places.resize(servers_->size());
    std::iota(places.begin(), places.end(), 0);
  }
  RETURN_IF_ERROR(directory_->Recreate(places, starts_over, [&] {
    for (const ReplacedServer& server : returned) {
      servers_->SetProcess(server.server, server.task, server.incarnation,
                           server.state_id);
    }
    return servers_->RollBack(generation, low_water_mark);
  }));
  absl::MutexLock lock(&optimizer_mutex_);
  for (const proto::SetOptimizerRequest& request : optimizers_.list()) {
    RETURN_IF_ERROR(servers_->SetOptimizer(request));
  }
  return absl::OkStatus();
}

void RemoteVariableStore::NoteRestored(const ReplacedServer& server) {
  servers_->SetProcess(server.server, server.task, server.incarnation,
                       server.state_id);
}

void RemoteVariableStore::ForgetValues() {
  for (RemoteVariable* variable : directory_->variables()) variable->Forget();
}

absl::StatusOr<std::unique_ptr<VariableSession>>
RemoteVariableStore::OpenSession(absl::Span<const VariableUse> uses) {
  std::vector<RemoteVariableSession::Entry> entries;
  entries.reserve(uses.size());
  absl::flat_hash_set<absl::string_view> loss_scales;
  for (const VariableUse& use : uses) {
    for (const VariableUse::PlannedUpdate& update : use.updates) {
      if (!update.loss_scale.empty()) loss_scales.insert(update.loss_scale);
    }
  }
  for (const VariableUse& use : uses) {
    ASSIGN_OR_RETURN(RemoteVariable * variable, directory_->Find(use.name));
    entries.push_back({variable, use.is_read, loss_scales.contains(use.name)});
  }
  return WithLossScale(WithClipping(std::make_unique<RemoteVariableSession>(
                                        servers_.get(), marks_.get(),
                                        update_gate_, std::move(entries)),
                                    uses),
                       uses);
}

void RemoteVariableStore::NoteScheduled(uint64_t step_id) {
  Raise(&marks_->scheduled, step_id);
}

void RemoteVariableStore::SetLowWaterMark(uint64_t step_id) {
  Raise(&marks_->low_water_mark, step_id);
}

void RemoteVariableStore::Watch(
    bool as_coordinator,
    std::function<void(int server, const absl::Status&)> on_lost) {
  servers_->Watch(as_coordinator, std::move(on_lost));
}

absl::Status RemoteVariableStore::ShutdownServers(int exit_code) {
  return servers_->Shutdown(exit_code);
}

}  // namespace muster
