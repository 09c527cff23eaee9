#include "common/net/collectives/views/group_view.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/core/base/status_macros.h"
#include "common/net/cluster/cluster_codec.h"
#include "proto/group_view.pb.h"

namespace muster {
namespace {

constexpr int64_t kViewBytesMax = 16 << 20;

proto::GroupView Encode(const GroupView& view) {
  proto::GroupView message;
  message.set_number(view.number);
  for (const GroupView::Member& member : view.members) {
    proto::GroupView::Member* const added = message.add_members();
    *added->mutable_task() = EncodeTask(member.task);
    added->set_incarnation(member.incarnation);
    added->set_address(member.address);
  }
  *message.mutable_claimed_by() = EncodeTask(view.claimed_by);
  message.set_claimed_at_unix_milliseconds(absl::ToUnixMillis(view.claimed_at));
  return message;
}

absl::StatusOr<GroupView> Decode(const proto::GroupView& message) {
  GroupView view{.number = message.number()};
  for (const proto::GroupView::Member& member : message.members()) {
    ASSIGN_OR_RETURN(const TaskId task, DecodeTask(member.task()));
    view.members.push_back({.task = task,
                            .incarnation = member.incarnation(),
                            .address = member.address()});
  }
  ASSIGN_OR_RETURN(view.claimed_by, DecodeTask(message.claimed_by()));
  view.claimed_at =
      absl::FromUnixMillis(message.claimed_at_unix_milliseconds());
  return view;
}

}  // namespace

bool GroupView::Has(TaskId task) const {
  return std::any_of(
      members.begin(), members.end(),
      [task](const Member& member) { return member.task == task; });
}

absl::StatusOr<ClusterSpec> GroupView::Cluster() const {
  std::map<TaskType, JobSpec> jobs;
  for (const Member& member : members) {
    JobSpec& job = jobs[member.task.type];
    job.addresses[member.task.index] = member.address;
    job.sparse = member.task.type == TaskType::kWorker;
  }
  return ClusterSpec::Create(std::move(jobs));
}

std::string DescribeChange(const GroupView& before, const GroupView& view) {
  std::vector<TaskId> lost;
  std::vector<TaskId> joined;
  for (const GroupView::Member& member : before.members) {
    if (!view.Has(member.task)) lost.push_back(member.task);
  }
  for (const GroupView::Member& member : view.members) {
    if (!before.Has(member.task)) joined.push_back(member.task);
  }
  std::vector<std::string> changes;
  if (!lost.empty()) {
    changes.push_back(absl::StrCat("without ", TaskNames(lost)));
  }
  if (!joined.empty()) {
    changes.push_back(absl::StrCat("with ", TaskNames(joined)));
  }
  const std::string count = absl::StrCat(
      view.members.size(), view.members.size() == 1 ? " task" : " tasks");
  if (changes.empty()) return absl::StrCat("with ", count);
  return absl::StrCat(absl::StrJoin(changes, " and "), ": ", count);
}

std::string TaskNames(const std::vector<TaskId>& tasks) {
  return absl::StrJoin(tasks, ", ", [](std::string* out, TaskId task) {
    absl::StrAppend(out, task.ToString());
  });
}

std::string ViewClaims::PathOf(uint64_t number) const {
  return JoinPath(folder_, absl::StrCat("view-", number));
}

absl::StatusOr<GroupView> ViewClaims::Claim(const GroupView& view) const {
  RETURN_IF_ERROR(disk_->MakeFolder(folder_));
  const absl::Status created = disk_->CreateExclusive(
      PathOf(view.number), Encode(view).SerializeAsString());
  if (created.ok()) return view;
  if (!absl::IsAlreadyExists(created)) return created;
  return Read(view.number);
}

absl::StatusOr<GroupView> ViewClaims::Read(uint64_t number) const {
  const std::string path = PathOf(number);
  ASSIGN_OR_RETURN(const std::string bytes,
                   ReadFile(disk_, path, kViewBytesMax));
  proto::GroupView message;
  if (!message.ParseFromString(bytes) || message.number() != number) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is not view ", number, " of a group"));
  }
  return Decode(message);
}

absl::StatusOr<std::vector<GroupView>> ViewClaims::ReadAfter(
    uint64_t number) const {
  std::vector<GroupView> views;
  while (true) {
    absl::StatusOr<GroupView> next = Read(++number);
    if (absl::IsNotFound(next.status())) return views;
    RETURN_IF_ERROR(next.status());
    views.push_back(*std::move(next));
  }
}

absl::StatusOr<std::optional<GroupView>> ViewClaims::NewestAfter(
    uint64_t number) const {
  ASSIGN_OR_RETURN(const std::vector<GroupView> views, ReadAfter(number));
  if (views.empty()) return std::nullopt;
  return views.back();
}

absl::StatusOr<std::vector<GroupView>> ViewClaims::All() const {
  return ReadAfter(0);
}

}  // namespace muster
