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

// Unix sockets between all ranks of a host. They transfer open files, and are
// closed when the process at the other end ends.
namespace muster::internal {

struct PeerLink {
  FileDescriptor socket;  // Not open for this rank itself.
  pid_t pid = 0;          // 0 if the peer is in another pid namespace.
};

// Connects to all ranks and returns the links by rank. Each rank connects to
// the lower ones. Errors are those of ConnectSharedMemoryGroup().
absl::StatusOr<std::vector<PeerLink>> LinkPeers(
    const LocalEndpoint& endpoint, const SharedMemoryGroupOptions& options,
    absl::Time deadline);

// An open file and two words that describe it.
struct Parcel {
  FileDescriptor file;
  std::array<uint64_t, 2> words = {};
};

//   kUnavailable  the peer is gone
absl::Status SendParcel(const PeerLink& link, const FileDescriptor& file,
                        const std::array<uint64_t, 2>& words);

//   kUnavailable        the peer is gone
//   kDeadlineExceeded   nothing arrived
//   kCancelled          `interrupt` became readable
absl::StatusOr<Parcel> ReceiveParcel(const PeerLink& link,
                                     const FileDescriptor& interrupt,
                                     absl::Time deadline);

// Detects which peers have ended, on its own thread.
class PeerWatch {
 public:
  // `links` is borrowed. Calls `on_gone` once for each rank that ends. `reason`
  // is a clause for errors.
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

// An eventfd that interrupts ReceiveParcel() and PeerWatch.
FileDescriptor MakeInterrupt();
void Interrupt(const FileDescriptor& interrupt);

}  // namespace muster::internal

#endif  // COMMON_NET_COLLECTIVES_SHM_RANK_SOCKETS_H_
