#ifndef COMMON_NET_COLLECTIVES_VIEWS_JOIN_REQUESTS_H_
#define COMMON_NET_COLLECTIVES_VIEWS_JOIN_REQUESTS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/io/storage/disk.h"
#include "common/net/collectives/views/group_view.h"

namespace muster {

namespace proto {
class GroupStart;
}  // namespace proto

// The files by which a process asks a running group to take it in, beside the
// views of the group. The process writes a request. The first task of the group
// answers with a pulse as long as there are requests, so that the process knows
// that the group runs.
//
// Thread-safe.
class JoinRequests {
 public:
  struct Request {
    GroupView::Member member;
    bool is_ready = false;  // False while the process prepares.
    uint64_t beat = 0;      // Counts up while the process waits.
  };

  // `disk` is borrowed. `folder` is that of the views.
  JoinRequests(Disk* disk, std::string folder)
      : disk_(disk), folder_(std::move(folder)) {}

  // The folder of the views of the group that was formed last in `run_dir`.
  //   kNotFound  no group has been formed there
  static absl::StatusOr<std::string> CurrentFolder(Disk* disk,
                                                   absl::string_view run_dir);
  static absl::Status SetCurrentFolder(Disk* disk, absl::string_view run_dir,
                                       absl::string_view folder);

  absl::Status Write(const Request& request) const;
  // Removes the requests of earlier processes of this task.
  absl::Status RemoveOthers(const GroupView::Member& member) const;
  absl::Status Remove(const GroupView::Member& member) const;
  // Returns the valid requests.
  absl::StatusOr<std::vector<Request>> List() const;

  // Counts up while the group runs and there are requests; 0 before the first.
  absl::StatusOr<uint64_t> ReadPulse() const;
  absl::Status WritePulse(uint64_t pulse) const;

  // Writes what processes that join repeat, unless another task has done so.
  absl::Status WriteStart(const proto::GroupStart& start) const;
  //   kNotFound  training has not begun
  absl::StatusOr<proto::GroupStart> ReadStart() const;

 private:
  std::string PathOf(const GroupView::Member& member) const;

  Disk* const disk_;
  const std::string folder_;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_VIEWS_JOIN_REQUESTS_H_
