#ifndef COMMON_NET_COLLECTIVES_SHM_SHARED_MEMORY_ENDPOINT_H_
#define COMMON_NET_COLLECTIVES_SHM_SHARED_MEMORY_ENDPOINT_H_

#include <sys/un.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/net/collectives/shm/file_descriptor.h"

namespace muster {

// Where the other ranks of a host find this one when they form a group that
// shares memory: a listening Unix socket with a random abstract name, which
// vanishes with the process.
//
// Every rank opens an endpoint, tells its address to the others by whatever
// means there are, and hands it to ConnectSharedMemoryGroup(). An endpoint
// serves one group, once.
class SharedMemoryEndpoint {
 public:
  //   kResourceExhausted  no more files
  //   kUnavailable        the system has no Unix sockets for us
  static absl::StatusOr<std::unique_ptr<SharedMemoryEndpoint>> Listen();

  SharedMemoryEndpoint(const SharedMemoryEndpoint&) = delete;
  SharedMemoryEndpoint& operator=(const SharedMemoryEndpoint&) = delete;

  // "<boot id>/<network namespace>/<random name>": printable, at most 128
  // characters. Anybody may know it; who may join is decided by the token.
  const std::string& address() const { return address_; }

  // Whether a process with this address runs under the same kernel and in the
  // same network namespace, so that the two can share memory. False for what
  // is no address.
  static bool IsOnThisHost(absl::string_view address);

  // Where connect(2) finds it.
  //   kInvalidArgument  no address of an endpoint
  static absl::StatusOr<sockaddr_un> SocketAddress(absl::string_view address);

  const FileDescriptor& socket() const { return socket_; }

 private:
  SharedMemoryEndpoint(FileDescriptor socket, std::string address)
      : socket_(std::move(socket)), address_(std::move(address)) {}

  const FileDescriptor socket_;
  const std::string address_;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_SHM_SHARED_MEMORY_ENDPOINT_H_
