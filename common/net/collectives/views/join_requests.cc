#include "common/net/collectives/views/join_requests.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/core/base/status_macros.h"
#include "common/net/cluster/cluster_codec.h"
#include "common/net/rpc/identity.h"
#include "proto/group_view.pb.h"

namespace muster {
namespace {

constexpr absl::string_view kRequestPrefix = "join-";
constexpr absl::string_view kPulseName = "pulse";
constexpr absl::string_view kStartName = "start";
constexpr int64_t kNameBytesMax = 4096;
constexpr int64_t kRequestBytesMax = 64 << 10;
constexpr int64_t kStartBytesMax = int64_t{1} << 30;

std::string CurrentPath(absl::string_view run_dir) {
  return JoinPath(JoinPath(run_dir, "views"), "current");
}

}  // namespace

absl::StatusOr<std::string> JoinRequests::CurrentFolder(
    Disk* disk, absl::string_view run_dir) {
  ASSIGN_OR_RETURN(const std::string name,
                   ReadFile(disk, CurrentPath(run_dir), kNameBytesMax));
  return JoinPath(JoinPath(run_dir, "views"), name);
}

absl::Status JoinRequests::SetCurrentFolder(Disk* disk,
                                            absl::string_view run_dir,
                                            absl::string_view folder) {
  RETURN_IF_ERROR(disk->MakeFolder(folder));
  return ReplaceFileUnsynced(disk, CurrentPath(run_dir), BaseName(folder));
}

std::string JoinRequests::PathOf(const GroupView::Member& member) const {
  return JoinPath(
      folder_,
      absl::StrCat(kRequestPrefix,
                   absl::StrReplaceAll(member.task.ToString(), {{" ", "-"}}),
                   "-", IncarnationString(member.incarnation)));
}

absl::Status JoinRequests::Write(const Request& request) const {
  proto::JoinRequest message;
  *message.mutable_member()->mutable_task() = EncodeTask(request.member.task);
  message.mutable_member()->set_incarnation(request.member.incarnation);
  message.mutable_member()->set_address(request.member.address);
  message.set_is_ready(request.is_ready);
  message.set_beat(request.beat);
  return ReplaceFileUnsynced(disk_, PathOf(request.member),
                             message.SerializeAsString());
}

absl::Status JoinRequests::RemoveOthers(const GroupView::Member& member) const {
  ASSIGN_OR_RETURN(const std::vector<Request> requests, List());
  for (const Request& request : requests) {
    if (request.member.task != member.task || request.member == member) {
      continue;
    }
    RETURN_IF_ERROR(Remove(request.member));
  }
  return absl::OkStatus();
}

absl::Status JoinRequests::Remove(const GroupView::Member& member) const {
  const absl::Status removed = disk_->Remove(PathOf(member));
  return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
}

absl::StatusOr<std::vector<JoinRequests::Request>> JoinRequests::List() const {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, disk_->List(folder_));
  std::vector<Request> requests;
  for (const std::string& name : names) {
    if (!absl::StartsWith(name, kRequestPrefix)) continue;
    const absl::StatusOr<std::string> bytes =
        ReadFile(disk_, JoinPath(folder_, name), kRequestBytesMax);
    proto::JoinRequest message;
    // A request may be removed, or be the temporary file of one.
    if (!bytes.ok() || !message.ParseFromString(*bytes)) continue;
    const absl::StatusOr<TaskId> task = DecodeTask(message.member().task());
    if (!task.ok() || message.member().incarnation() == 0) continue;
    const Request request{
        .member = {.task = *task,
                   .incarnation = message.member().incarnation(),
                   .address = message.member().address()},
        .is_ready = message.is_ready(),
        .beat = message.beat()};
    if (PathOf(request.member) != JoinPath(folder_, name)) continue;
    requests.push_back(request);
  }
  return requests;
}

absl::StatusOr<uint64_t> JoinRequests::ReadPulse() const {
  const absl::StatusOr<std::string> text =
      ReadFile(disk_, JoinPath(folder_, kPulseName), kNameBytesMax);
  if (absl::IsNotFound(text.status())) return 0;
  RETURN_IF_ERROR(text.status());
  uint64_t pulse = 0;
  if (absl::SimpleAtoi(*text, &pulse)) return pulse;
  return absl::DataLossError(absl::StrCat(JoinPath(folder_, kPulseName),
                                          " does not contain a number"));
}

absl::Status JoinRequests::WritePulse(uint64_t pulse) const {
  return ReplaceFileUnsynced(disk_, JoinPath(folder_, kPulseName),
                             absl::StrCat(pulse));
}

absl::Status JoinRequests::WriteStart(const proto::GroupStart& start) const {
  RETURN_IF_ERROR(disk_->MakeFolder(folder_));
  const absl::Status created = disk_->CreateExclusive(
      JoinPath(folder_, kStartName), start.SerializeAsString());
  return absl::IsAlreadyExists(created) ? absl::OkStatus() : created;
}

absl::StatusOr<proto::GroupStart> JoinRequests::ReadStart() const {
  const std::string path = JoinPath(folder_, kStartName);
  ASSIGN_OR_RETURN(const std::string bytes,
                   ReadFile(disk_, path, kStartBytesMax));
  proto::GroupStart start;
  if (start.ParseFromString(bytes)) return start;
  return absl::DataLossError(
      absl::StrCat(path, " is not the start of a group"));
}

}  // namespace muster
