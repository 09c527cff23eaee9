#ifndef COMMON_NET_COLLECTIVES_SHM_SHARED_MEMORY_GROUP_H_
#define COMMON_NET_COLLECTIVES_SHM_SHARED_MEMORY_GROUP_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/shm/group_options.h"
#include "common/net/rpc/local_endpoint.h"

// Groups whose ranks can access each other's memory: processes of one host, or
// threads of one process.
//
//   ASSIGN_OR_RETURN(auto endpoint, LocalEndpoint::Listen());
//   ... send endpoint->address() to the others, receive theirs ...
//   ASSIGN_OR_RETURN(auto communicator,
//                    ConnectSharedMemoryGroup(std::move(endpoint), options));
namespace muster {

// Blocks until this rank is connected to all others. All ranks call it at about
// the same time.
//
//   kInvalidArgument   rank, size, addresses or token are invalid, or another
//                      rank's size, generation or tuning differs: says which
//   kDeadlineExceeded  names the ranks that have not connected
//   kUnavailable       a rank's endpoint is gone, or not on this host; names it
//   kResourceExhausted no file descriptor or memory is available
absl::StatusOr<std::unique_ptr<Communicator>> ConnectSharedMemoryGroup(
    std::unique_ptr<LocalEndpoint> endpoint,
    const SharedMemoryGroupOptions& options);

// Creates a group of threads of this process, with one communicator for each,
// by rank. All memory is as fast as that of Allocate().
//
//   kInvalidArgument   `size` is less than 1 or over kSharedMemoryRanksMax
absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> CreateLocalGroup(
    int size, const LocalGroupOptions& options = LocalGroupOptions());

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_SHM_SHARED_MEMORY_GROUP_H_
