#include "ps/checkpoint_handler.h"

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/status_message.h"
#include "common/core/system/host_name.h"
#include "common/core/system/log.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/bundle_files.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/checkpoint/tensor_bundle_writer.h"
#include "common/io/storage/object_url.h"
#include "common/net/rpc/fault_point.h"
#include "proto/parameter_server.pb.h"
#include "proto/rpc.pb.h"
#include "ps/client/methods.h"
#include "ps/client/snapshot_id_name.h"
#include "ps/save_pace.h"
#include "ps/shard_checkpoint.h"

namespace muster {
namespace {

constexpr size_t kPathBytesMax = 4096;

// Maximum number of snapshots that wait to be saved. Several callbacks may save
// at the same step. Each snapshot can take as much memory as the variables.
constexpr size_t kFrozenMax = 4;

// Training has priority over saving.
constexpr int kSaverNiceness = 10;

bool IsWithin(absl::string_view path, absl::string_view folder) {
  while (absl::EndsWith(folder, "/")) folder.remove_suffix(1);
  return absl::StartsWith(path, folder) &&
         (path.size() == folder.size() || path[folder.size()] == '/');
}

absl::StatusOr<std::string> Canonical(const std::string& path) {
  std::error_code error;
  const std::filesystem::path canonical =
      std::filesystem::weakly_canonical(path, error);
  if (error) {
    return absl::ErrnoToStatus(error.value(), path);
  }
  return canonical.string();
}

absl::Status OutsideOf(const std::vector<std::string>& folders,
                       absl::string_view prefix) {
  return absl::PermissionDeniedError(absl::StrCat(
      prefix,
      " is outside of the folders in which this server reads and writes "
      "checkpoints (",
      folders.empty() ? "none" : absl::StrJoin(folders, ", "),
      "); start it with --checkpoint_root=FOLDER"));
}

absl::Status CheckUrl(absl::string_view prefix,
                      const std::optional<std::vector<std::string>>& folders) {
  ASSIGN_OR_RETURN(const ObjectUrl url, ParseObjectUrl(prefix));
  if (url.key.empty() || absl::EndsWith(url.key, "/")) {
    return absl::InvalidArgumentError(
        absl::StrCat(prefix, " names a folder, not a checkpoint"));
  }
  if (!folders.has_value()) return absl::OkStatus();
  for (const std::string& allowed : *folders) {
    if (IsBelowUrl(FolderOf(prefix), allowed)) return absl::OkStatus();
  }
  return OutsideOf(*folders, prefix);
}

}  // namespace

absl::StatusOr<std::string> CheckpointRoots::Resolve(
    absl::string_view prefix) const {
  if (IsObjectUrl(prefix)) {
    RETURN_IF_ERROR(CheckUrl(prefix, folders));
    return std::string(prefix);
  }
  const std::vector<absl::string_view> parts = absl::StrSplit(prefix, '/');
  const bool is_path =
      prefix.size() <= kPathBytesMax && absl::StartsWith(prefix, "/") &&
      !parts.back().empty() && !absl::StrContains(prefix, '\0') &&
      std::none_of(parts.begin(), parts.end(), [](absl::string_view part) {
        return part == ".." || part == ".";
      });
  if (!is_path) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected an absolute path without \"..\" as the prefix "
                     "of a checkpoint; got ",
                     prefix.substr(0, 256)));
  }
  ASSIGN_OR_RETURN(const std::string folder,
                   Canonical(std::string(FolderOf(prefix))));
  std::string resolved = JoinPath(folder, parts.back());
  if (!folders.has_value()) return resolved;
  for (const std::string& allowed : *folders) {
    if (IsObjectUrl(allowed)) continue;
    ASSIGN_OR_RETURN(const std::string root, Canonical(allowed));
    if (IsWithin(folder, root)) return resolved;
  }
  return OutsideOf(*folders, prefix);
}

CheckpointHandler::CheckpointHandler(const Options& options,
                                     const AdmissionCheck* admission_check,
                                     AdoptJob adopt_job, ParameterShard* shard)
    : roots_(options.roots),
      disk_(options.disk == nullptr ? Disk::Real() : options.disk),
      admission_check_(admission_check),
      adopt_job_(std::move(adopt_job)),
      shard_(shard),
      save_pool_("ps_save", 1),
      restore_pool_("ps_restore", 1) {
  TakeRestoredSnapshots();
  save_pool_.Schedule([] {
    if (setpriority(PRIO_PROCESS, gettid(), kSaverNiceness) != 0) {
      LOG(WARNING) << "cannot lower the priority of the thread that saves; "
                      "saving may slow down training";
    }
  });
}

void CheckpointHandler::TakeRestoredSnapshots() {
  absl::MutexLock lock(&mutex_);
  for (auto& snapshot : shard_->TakeRestoredSnapshots()) {
    frozen_.push_back(std::move(snapshot));
  }
}

void CheckpointHandler::AddTo(Service* service) {
  Add(kFreezeMethod, &restore_pool_, &CheckpointHandler::Freeze, service);
  Add(kSaveMethod, &save_pool_, &CheckpointHandler::Save, service);
  Add(kRestoreMethod, &restore_pool_, &CheckpointHandler::Restore, service);
  Add(kRollBackMethod, &restore_pool_, &CheckpointHandler::RollBack, service);
}

void CheckpointHandler::Add(absl::string_view method, ThreadPool* pool,
                            Handle handle, Service* service) {
  service->AddUnary(method, [this, pool, handle](ReceivedMessage message,
                                                 Responder responder) {
    pool->Schedule([this, handle, message = std::move(message),
                    responder = std::move(responder)]() mutable {
      responder.Respond((this->*handle)(message));
    });
  });
}

absl::StatusOr<Message> CheckpointHandler::Freeze(
    const ReceivedMessage& message) {
  ASSIGN_OR_RETURN(const auto request,
                   message.ParseBody<proto::FreezeRequest>());
  for (const uint64_t snapshot_id : request.dropped_snapshot_ids()) {
    TakeFrozen(snapshot_id).IgnoreError();  // A saved one is absent.
    RETURN_IF_ERROR(shard_->NoteSnapshotEnded(snapshot_id));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<FrozenShard> frozen,
                   shard_->Freeze(request.snapshot_id()));
  proto::FreezeResponse response;
  for (const FrozenShard::Variable& entry : frozen->variables) {
    const proto::ShardSpec& spec = entry.variable->spec();
    if (spec.row_begin() != 0) continue;
    auto* const variable = response.add_variables();
    variable->set_name(spec.variable().name());
    variable->set_update_count(entry.step_count());
    variable->mutable_slots()->Assign(entry.frozen.slot_names.begin(),
                                      entry.frozen.slot_names.end());
  }
  std::unique_ptr<FrozenShard> oldest;
  {
    absl::MutexLock lock(&mutex_);
    frozen_.push_back(std::move(frozen));
    if (frozen_.size() > kFrozenMax) {
      oldest = std::move(frozen_.front());
      frozen_.pop_front();
    }
  }
  return Message{response.SerializeAsString(), {}};
}

absl::StatusOr<std::unique_ptr<FrozenShard>> CheckpointHandler::TakeFrozen(
    uint64_t snapshot_id) {
  if (snapshot_id == 0) return shard_->Freeze(0);
  absl::MutexLock lock(&mutex_);
  const auto found = std::find_if(
      frozen_.begin(), frozen_.end(),
      [&](const auto& frozen) { return frozen->snapshot_id == snapshot_id; });
  if (found == frozen_.end()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "snapshot ", IncarnationString(snapshot_id),
        " does not exist: it was saved already, the server was restarted, or ",
        kFrozenMax, " newer snapshots replaced it"));
  }
  std::unique_ptr<FrozenShard> frozen = std::move(*found);
  frozen_.erase(found);
  return frozen;
}

absl::StatusOr<Message> CheckpointHandler::Save(
    const ReceivedMessage& message) {
  ASSIGN_OR_RETURN(const auto request, message.ParseBody<proto::SaveRequest>());
  if (request.only_checks()) {
    RETURN_IF_ERROR(roots_.Resolve(request.prefix()).status());
    return Message{proto::SaveResponse().SerializeAsString(), {}};
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<FrozenShard> frozen,
                   TakeFrozen(request.snapshot_id()));
  ASSIGN_OR_RETURN(const std::string prefix, roots_.Resolve(request.prefix()));
  const BundleShard place = {.index = request.shard_index(),
                             .count = request.shard_count()};
  proto::SaveResponse response;
  const auto write = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(std::unique_ptr<TensorBundleWriter> writer,
                     TensorBundleWriter::Create(disk_, prefix, place));
    RETURN_IF_ERROR(FaultPoint("ps.while_saving"));
    SavePace pace([this] { return shard_->exchange_count(); });
    RETURN_IF_ERROR(WriteFrozenShard(*frozen, writer.get(), &pace));
    if (place.index == 0 && frozen->snapshot_id != 0) {
      RETURN_IF_ERROR(writer->Add(
          kSnapshotIdName,
          Tensor::Scalar<int64_t>(static_cast<int64_t>(frozen->snapshot_id))));
    }
    response.set_data_path(writer->data_path());
    return writer->Finish();
  };
  RETURN_IF_ERROR(Dress(write(), prefix));
  RETURN_IF_ERROR(shard_->NoteSnapshotEnded(request.snapshot_id()));
  ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> data,
                   disk_->Open(response.data_path()));
  response.set_data_bytes(data->size_bytes());
  return Message{response.SerializeAsString(), {}};
}

absl::StatusOr<Message> CheckpointHandler::Restore(
    const ReceivedMessage& message) {
  ASSIGN_OR_RETURN(const auto request,
                   message.ParseBody<proto::RestoreRequest>());
  ASSIGN_OR_RETURN(const std::string prefix, roots_.Resolve(request.prefix()));
  const auto restore = [&]() -> absl::Status {
    RETURN_IF_ERROR(FaultPoint("ps.while_restoring"));
    ASSIGN_OR_RETURN(const std::unique_ptr<TensorBundleReader> reader,
                     TensorBundleReader::Open(disk_, prefix));
    return request.only_verifies()
               ? shard_->Verify(*reader, request.values_only())
               : shard_->Restore(*reader, request.values_only());
  };
  RETURN_IF_ERROR(Dress(restore(), prefix));
  return Message{proto::RestoreResponse().SerializeAsString(), {}};
}

absl::StatusOr<Message> CheckpointHandler::RollBack(
    const ReceivedMessage& message) {
  ASSIGN_OR_RETURN(const auto request,
                   message.ParseBody<proto::RollBackRequest>());
  RETURN_IF_ERROR(adopt_job_(message.identity()));
  RETURN_IF_ERROR(
      shard_->RollBack(request.generation(), request.low_water_mark()));
  return Message{proto::RollBackResponse().SerializeAsString(), {}};
}

absl::Status CheckpointHandler::Dress(const absl::Status& status,
                                      absl::string_view prefix) const {
  if (status.ok()) return status;
  std::string text = absl::StrCat(admission_check_->self().ToString(), " on ",
                                  HostName(), ": ", status.message());
  if (absl::IsNotFound(status) && !disk_->Open(BundleIndexPath(prefix)).ok()) {
    absl::StrAppend(&text,
                    "; this task cannot open the checkpoint. All tasks must "
                    "have access to the same folder under the same path");
  }
  return WithMessage(status, text);
}

}  // namespace muster
