#include "ps/client/remote_variable_store.h"

#include <unistd.h>

#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/variables/clipping_session.h"
#include "ps/client/remote_variable.h"
#include "ps/client/remote_variable_session.h"

namespace muster {
namespace {

size_t SegmentBytes(const RemoteVariableStore::Options& options) {
  if (!options.shared_memory) return 0;
  if (options.shared_memory_bytes_max > 0) {
    return options.shared_memory_bytes_max;
  }
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE) /
         4;
}

// Raises `mark` to `value`.
void Raise(std::atomic<uint64_t>* mark, uint64_t value) {
  uint64_t before = mark->load(std::memory_order_relaxed);
  while (before < value && !mark->compare_exchange_weak(
                               before, value, std::memory_order_acq_rel)) {
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<RemoteVariableStore>> RemoteVariableStore::Open(
    Network* network, Options options) {
  if (options.servers.empty()) {
    return absl::InvalidArgumentError(
        "variables on parameter servers need a parameter server: the cluster "
        "has no task of type ps");
  }
  std::unique_ptr<RemoteVariableStore> store(
      new RemoteVariableStore(network, std::move(options)));
  RETURN_IF_ERROR(store->directory_.Refresh());
  store->servers_.ShareMemory();
  return store;
}

RemoteVariableStore::RemoteVariableStore(Network* network, Options options)
    : servers_(network, {.servers = std::move(options.servers),
                         .timeout = options.timeout,
                         .retry_for = options.retry_for,
                         .segment_bytes = SegmentBytes(options)}),
      directory_(&servers_, std::move(options.partitioner), options.placement) {
}

RemoteVariableStore::~RemoteVariableStore() = default;

absl::Status RemoteVariableStore::Create(const proto::VariableSpec& spec) {
  return directory_.Create(spec);
}

std::vector<proto::VariableSpec> RemoteVariableStore::List() const {
  return directory_.List();
}

absl::StatusOr<Tensor> RemoteVariableStore::Read(absl::string_view name) {
  ASSIGN_OR_RETURN(RemoteVariable * variable, directory_.Find(name));
  uint32_t exchange_index = 0;
  ExchangeBatch batch(&servers_, &marks_, /*step_id=*/0, &exchange_index);
  batch.AddPull(variable);
  RETURN_IF_ERROR(batch.Send());
  return variable->value();
}

absl::Status RemoteVariableStore::Assign(absl::string_view name,
                                         const Tensor& value) {
  ASSIGN_OR_RETURN(RemoteVariable * variable, directory_.Find(name));
  if (value.type() != variable->type()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable \"", name, "\" is a ", variable->type().ToString(), "; a ",
        value.type().ToString(), " was to be assigned"));
  }
  uint32_t exchange_index = 0;
  ExchangeBatch batch(&servers_, &marks_, /*step_id=*/0, &exchange_index);
  batch.AddDenseUpdate(*variable, proto::ASSIGN, value);
  return batch.Send();
}

absl::Status RemoteVariableStore::SetOptimizer(
    const proto::Optimizer& optimizer) {
  return servers_.SetOptimizer(optimizer);
}

absl::StatusOr<int64_t> RemoteVariableStore::UpdateCount(
    absl::string_view name) {
  ASSIGN_OR_RETURN(const RemoteVariable* variable, directory_.Find(name));
  ASSIGN_OR_RETURN(const std::vector<proto::DescribeResponse> descriptions,
                   servers_.Describe());
  // Every shard hears of every gradient.
  const RemoteShard& shard = variable->shards().front();
  for (const auto& held : descriptions[shard.server].shards()) {
    if (held.handle() == shard.handle) return held.update_count();
  }
  return absl::InternalError(absl::StrCat(
      "variable \"", name, "\" has gone from its parameter server"));
}

absl::StatusOr<std::unique_ptr<VariableSession>>
RemoteVariableStore::OpenSession(absl::Span<const VariableUse> uses) {
  std::vector<RemoteVariableSession::Entry> entries;
  entries.reserve(uses.size());
  for (const VariableUse& use : uses) {
    ASSIGN_OR_RETURN(RemoteVariable * variable, directory_.Find(use.name));
    entries.push_back({variable, use.is_read});
  }
  return WithClipping(std::make_unique<RemoteVariableSession>(
                          &servers_, &marks_, std::move(entries)),
                      uses);
}

void RemoteVariableStore::NoteScheduled(uint64_t step_id) {
  Raise(&marks_.scheduled, step_id);
}

void RemoteVariableStore::SetLowWaterMark(uint64_t step_id) {
  Raise(&marks_.low_water_mark, step_id);
}

void RemoteVariableStore::Watch(
    bool as_coordinator,
    std::function<void(int server, const absl::Status&)> on_lost) {
  servers_.Watch(as_coordinator, std::move(on_lost));
}

absl::Status RemoteVariableStore::ShutdownServers(int exit_code) {
  return servers_.Shutdown(exit_code);
}

std::vector<uint64_t> RemoteVariableStore::server_incarnations() const {
  return servers_.incarnations();
}

}  // namespace muster
