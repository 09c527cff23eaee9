#ifndef COMMON_NET_COLLECTIVES_VIEWS_GROUP_VIEW_H_
#define COMMON_NET_COLLECTIVES_VIEWS_GROUP_VIEW_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/io/storage/disk.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/task_id.h"

namespace muster {

// The tasks that form a synchronous group from some step on. View 0 is the
// whole cluster.
struct GroupView {
  struct Member {
    TaskId task;
    uint64_t incarnation = 0;
    std::string address;  // "host:port".

    bool operator==(const Member&) const = default;
  };

  uint64_t number = 0;
  std::vector<Member> members;  // By rank.
  TaskId claimed_by;
  absl::Time claimed_at = absl::UnixEpoch();  // By the clock of `claimed_by`.

  bool Has(TaskId task) const;
  // Returns the cluster of these tasks.
  //   kInvalidArgument  as ClusterSpec::Create()
  absl::StatusOr<ClusterSpec> Cluster() const;
};

// "without worker 1 and with worker 2: 3 tasks", compared with `before`.
std::string DescribeChange(const GroupView& before, const GroupView& view);

// "worker 0, worker 2".
std::string TaskNames(const std::vector<TaskId>& tasks);

// The views of one group, one file for each in a folder that all tasks share.
// A file is created exclusively and never changed, so exactly one view has each
// number, and tasks that cannot reach each other cannot form two groups.
//
// Thread-safe.
class ViewClaims {
 public:
  // `disk` is borrowed.
  ViewClaims(Disk* disk, std::string folder)
      : disk_(disk), folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }

  // Creates the view unless another task has created the one with this number.
  // Returns the view that exists then.
  //   kInvalidArgument  the file is not a view
  //   others            the folder cannot be read or written
  absl::StatusOr<GroupView> Claim(const GroupView& view) const;

  // Returns the newest view whose number is higher than `number`.
  //   as Claim()
  absl::StatusOr<std::optional<GroupView>> NewestAfter(uint64_t number) const;

  // Returns all views with a file, in order.
  //   as Claim()
  absl::StatusOr<std::vector<GroupView>> All() const;

 private:
  absl::StatusOr<std::vector<GroupView>> ReadAfter(uint64_t number) const;
  // kNotFound  there is none
  absl::StatusOr<GroupView> Read(uint64_t number) const;
  std::string PathOf(uint64_t number) const;

  Disk* const disk_;
  const std::string folder_;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_VIEWS_GROUP_VIEW_H_
