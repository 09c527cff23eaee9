#include "ps/client/variable_directory.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/compute/variables/constraint.h"
#include "common/compute/variables/initial_value.h"
#include "common/compute/variables/update_checks.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/tensor_codec.h"
#include "common/net/rpc/status_detail.h"
#include "proto/rpc.pb.h"
#include "proto/variable.pb.h"
#include "ps/client/shard_layout.h"

namespace muster {
namespace {

absl::StatusOr<TensorType> TypeOf(const proto::VariableSpec& spec) {
  ASSIGN_OR_RETURN(const DType dtype, DecodeDType(spec.dtype()));
  ASSIGN_OR_RETURN(Shape shape,
                   DecodeShape(spec.shape(), /*allow_unknown=*/false));
  return TensorType{dtype, std::move(shape)};
}

// A shard and the server that holds it.
struct HeldShard {
  const proto::ShardDescription* description;
  int server;
};

// True if `shards`, which are sorted by row, cover all rows of a variable.
bool IsComplete(const std::vector<HeldShard>& shards, int64_t row_count) {
  int64_t next_row = 0;
  for (const HeldShard& shard : shards) {
    if (shard.description->spec().row_begin() != next_row) return false;
    next_row = shard.description->spec().row_end();
  }
  return next_row == row_count;
}

}  // namespace

VariableDirectory::VariableDirectory(
    ServerGroup* servers, std::shared_ptr<const Partitioner> partitioner,
    PlacementPolicy placement)
    : servers_(servers),
      partitioner_(std::move(partitioner)),
      placement_(placement, servers->size()) {}

void VariableDirectory::Add(std::unique_ptr<RemoteVariable> variable) {
  next_ordinal_ = std::max(next_ordinal_, variable->ordinal() + 1);
  absl::MutexLock lock(&mutex_);
  by_ordinal_[variable->ordinal()] = variable.get();
  by_name_[variable->name()] = std::move(variable);
}

absl::Status VariableDirectory::Refresh() {
  ASSIGN_OR_RETURN(const std::vector<proto::DescribeResponse> descriptions,
                   servers_->Describe());
  // In the order of creation, so that `placement_` records the shards as if
  // this process had placed them.
  std::map<std::pair<int64_t, std::string>, std::vector<HeldShard>> held;
  for (int server = 0; server < servers_->size(); ++server) {
    for (const auto& shard : descriptions[server].shards()) {
      held[{shard.spec().ordinal(), shard.spec().variable().name()}].push_back(
          {&shard, server});
    }
  }
  absl::MutexLock creating(&create_mutex_);
  for (auto& [key, shards] : held) {
    if (FindKnown(key.second) != nullptr) continue;
    std::sort(shards.begin(), shards.end(),
              [](const HeldShard& a, const HeldShard& b) {
                return a.description->spec().row_begin() <
                       b.description->spec().row_begin();
              });
    const proto::VariableSpec& spec = shards[0].description->spec().variable();
    ASSIGN_OR_RETURN(const TensorType type, TypeOf(spec));
    const int64_t row_count = type.shape.rank() == 0 ? 1 : type.shape.dim(0);
    if (!IsComplete(shards, row_count)) continue;
    std::vector<RemoteShard> remote_shards;
    for (const HeldShard& shard : shards) {
      remote_shards.push_back({shard.server, shard.description->handle()});
      const auto& shard_spec = shard.description->spec();
      placement_.NotePlaced(
          shard.server,
          (shard_spec.row_end() - shard_spec.row_begin()) *
              (type.shape.element_count() / std::max<int64_t>(1, row_count)) *
              static_cast<int64_t>(SizeOf(type.dtype)));
    }
    Add(std::make_unique<RemoteVariable>(spec, type, key.first,
                                         std::move(remote_shards)));
  }
  return absl::OkStatus();
}

proto::ShardSpec VariableDirectory::SpecOf(const proto::VariableSpec& variable,
                                           int64_t ordinal,
                                           const ShardLayout& layout,
                                           int64_t shard) {
  proto::ShardSpec spec;
  *spec.mutable_variable() = variable;
  spec.set_shard_name(ShardName(variable.name(), shard, layout.shard_count()));
  spec.set_row_begin(layout.RowBegin(shard));
  spec.set_row_end(layout.RowBegin(shard + 1));
  spec.set_ordinal(ordinal);
  return spec;
}

std::vector<proto::CreateRequest> VariableDirectory::RequestsOf(
    const RemoteVariable& variable, bool starts_over) {
  std::vector<proto::CreateRequest> requests;
  for (size_t i = 0; i < variable.shards().size(); ++i) {
    proto::CreateRequest& request = requests.emplace_back();
    *request.mutable_spec() =
        SpecOf(variable.spec(), variable.ordinal(), variable.layout(),
               static_cast<int64_t>(i));
    request.set_handle_plus_one(variable.shards()[i].handle + 1);
    request.set_will_be_restored(!starts_over);
    request.set_starts_over(starts_over);
  }
  return requests;
}

absl::Status VariableDirectory::Recreate(
    absl::Span<const int> servers, bool starts_over,
    absl::FunctionRef<absl::Status()> begin) {
  absl::MutexLock creating(&create_mutex_);
  RETURN_IF_ERROR(begin());
  std::vector<proto::CreateRequest> requests;
  std::vector<int> places;
  for (const RemoteVariable* variable : variables()) {
    std::vector<proto::CreateRequest> shards =
        RequestsOf(*variable, starts_over);
    for (size_t i = 0; i < shards.size(); ++i) {
      const int server = variable->shards()[i].server;
      if (std::find(servers.begin(), servers.end(), server) == servers.end()) {
        continue;
      }
      requests.push_back(std::move(shards[i]));
      places.push_back(server);
    }
  }
  return servers_->Create(requests, places).status();
}

absl::Status VariableDirectory::StartOver(const proto::VariableSpec& spec) {
  RETURN_IF_ERROR(ValidateVariableSpec(spec));
  ASSIGN_OR_RETURN(const TensorType type, TypeOf(spec));
  ASSIGN_OR_RETURN(RemoteVariable* const variable, Find(spec.name()));
  RETURN_IF_ERROR(CheckSameType(spec.name(), variable->type(), type));
  absl::MutexLock creating(&create_mutex_);
  std::vector<proto::CreateRequest> requests =
      RequestsOf(*variable, /*starts_over=*/true);
  std::vector<int> places;
  for (size_t i = 0; i < requests.size(); ++i) {
    *requests[i].mutable_spec()->mutable_variable() = spec;
    places.push_back(variable->shards()[i].server);
  }
  RETURN_IF_ERROR(servers_->Create(requests, places).status());
  variable->SetSpec(spec);
  variable->Forget();
  return absl::OkStatus();
}

absl::Status VariableDirectory::Create(const proto::VariableSpec& spec) {
  RETURN_IF_ERROR(ValidateVariableSpec(spec));
  ASSIGN_OR_RETURN(const TensorType type, TypeOf(spec));
  absl::MutexLock creating(&create_mutex_);
  if (const RemoteVariable* known = FindKnown(spec.name())) {
    RETURN_IF_ERROR(CheckSameType(spec.name(), known->type(), type));
    return CheckSameConstraint(known->spec(), spec);
  }
  const int64_t row_count = type.shape.rank() == 0 ? 1 : type.shape.dim(0);
  const int64_t shard_count =
      partitioner_ == nullptr ||
              NeedsAllRows(spec.constraint(), type.shape.rank())
          ? 1
          : partitioner_->ShardCount(type.shape, type.dtype);
  const ShardLayout layout(row_count, shard_count);
  const int64_t row_bytes = row_count == 0
                                ? 0
                                : type.shape.element_count() / row_count *
                                      static_cast<int64_t>(SizeOf(type.dtype));
  std::vector<proto::CreateRequest> requests;
  std::vector<int> places;
  Placement placement = placement_;
  for (int64_t shard = 0; shard < shard_count; ++shard) {
    *requests.emplace_back().mutable_spec() =
        SpecOf(spec, next_ordinal_, layout, shard);
    places.push_back(placement.PlaceNext(layout.RowCount(shard) * row_bytes));
  }
  ASSIGN_OR_RETURN(const std::vector<uint32_t> handles,
                   servers_->Create(requests, places));
  // A variable whose creation failed does not affect the placement of later
  // ones.
  placement_ = placement;
  std::vector<RemoteShard> shards;
  for (int64_t shard = 0; shard < shard_count; ++shard) {
    shards.push_back({places[shard], handles[shard]});
  }
  Add(std::make_unique<RemoteVariable>(spec, type, next_ordinal_,
                                       std::move(shards)));
  return absl::OkStatus();
}

RemoteVariable* VariableDirectory::FindKnown(absl::string_view name) const {
  absl::ReaderMutexLock lock(&mutex_);
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second.get();
}

absl::StatusOr<RemoteVariable*> VariableDirectory::Find(
    absl::string_view name) {
  RemoteVariable* variable = FindKnown(name);
  if (variable == nullptr) {
    RETURN_IF_ERROR(Refresh());
    variable = FindKnown(name);
  }
  if (variable != nullptr) return variable;
  // A server that was just restarted has no variables yet. A TaskFailure marks
  // the error, so that the caller can try again.
  proto::TaskFailure failure;
  failure.set_task_type("ps");
  failure.set_task_index(-1);
  failure.set_attempted("looking for a variable");
  absl::ReaderMutexLock lock(&mutex_);
  return WithTaskFailure(
      absl::NotFoundError(absl::StrCat("no variable \"", name,
                                       "\"; the parameter servers hold ",
                                       by_name_.size(), " others")),
      failure);
}

std::vector<RemoteVariable*> VariableDirectory::variables() const {
  std::vector<RemoteVariable*> variables;
  absl::ReaderMutexLock lock(&mutex_);
  for (const auto& [ordinal, variable] : by_ordinal_) {
    variables.push_back(variable);
  }
  return variables;
}

std::vector<proto::VariableSpec> VariableDirectory::List() const {
  std::vector<proto::VariableSpec> specs;
  absl::ReaderMutexLock lock(&mutex_);
  for (const auto& [ordinal, variable] : by_ordinal_) {
    specs.push_back(variable->spec());
  }
  return specs;
}

}  // namespace muster
