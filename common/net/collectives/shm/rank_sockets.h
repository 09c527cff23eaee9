#ifndef COMMON_NET_COLLECTIVES_SHM_RANK_SOCKETS_H_
#define COMMON_NET_COLLECTIVES_SHM_RANK_SOCKETS_H_

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/system/file_descriptor.h"
#include "common/net/collectives/shm/group_options.h"
#include "common/net/rpc/local_endpoint.h"

// Unix sockets between all ranks of a host: they carry open files, and end when
// the process at their other end does.
namespace muster::internal {

struct PeerLink {
  FileDescriptor socket;  // Not open for the rank itself.
  pid_t pid = 0;          // 0 where the peer's pid means nothing here.
};

// Links to all ranks, by rank. Each rank dials those below it. Errors are those
// of ConnectSharedMemoryGroup().
absl::StatusOr<std::vector<PeerLink>> LinkPeers(
    const LocalEndpoint& endpoint, const SharedMemoryGroupOptions& options,
    absl::Time deadline);

// An open file, and what is to be known about it.
struct Parcel {
  FileDescriptor file;
  std::array<uint64_t, 2> words = {};
};

//   kUnavailable  the peer is gone
absl::Status SendParcel(const PeerLink& link, const FileDescriptor& file,
                        const std::array<uint64_t, 2>& words);

//   kUnavailable        the peer is gone
//   kDeadlineExceeded   nothing came
//   kCancelled          `interrupt` became readable
absl::StatusOr<Parcel> ReceiveParcel(const PeerLink& link,
                                     const FileDescriptor& interrupt,
                                     absl::Time deadline);

// Tells, from a thread of its own, which peers have ended.
class PeerWatch {
 public:
  // `links` is borrowed. `on_gone` gets a rank, once, and the end of a sentence
  // about it.
  PeerWatch(const std::vector<PeerLink>* links,
            std::function<void(int rank, absl::string_view reason)> on_gone);
  ~PeerWatch();

 private:
  void Run();

  const std::vector<PeerLink>* const links_;
  const std::function<void(int rank, absl::string_view reason)> on_gone_;
  const FileDescriptor stop_;
  std::thread thread_;
};

// For LinkPeers() and tests: what an eventfd is good for.
FileDescriptor MakeInterrupt();
void Interrupt(const FileDescriptor& interrupt);

}  // namespace muster::internal

#endif  // COMMON_NET_COLLECTIVES_SHM_RANK_SOCKETS_H_
