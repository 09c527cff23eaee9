#ifndef COMMON_NET_RPC_LOCAL_ENDPOINT_H_
#define COMMON_NET_RPC_LOCAL_ENDPOINT_H_

#include <sys/un.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/core/system/file_descriptor.h"

namespace muster {

// Where other processes of this host reach this one: a listening Unix socket
// with a random abstract name, which vanishes with the process.
//
// The address goes to the other process by any means. It is no secret, so
// both ends check whom they have reached: IsOfThisUser(), and a secret
// (secret.h) that only the intended process was told.
class LocalEndpoint {
 public:
  //   kResourceExhausted  no more files
  //   kUnavailable        the system has no Unix sockets for us
  static absl::StatusOr<std::unique_ptr<LocalEndpoint>> Listen();

  LocalEndpoint(const LocalEndpoint&) = delete;
  LocalEndpoint& operator=(const LocalEndpoint&) = delete;

  // "<boot id>/<network namespace>/<random name>": printable, at most 128
  // characters.
  const std::string& address() const { return address_; }

  // True if a process with this address runs under the same kernel and in the
  // same network namespace, so that the two can share memory. False for what
  // is no address.
  static bool IsOnThisHost(absl::string_view address);

  // Where connect(2) finds it.
  //   kInvalidArgument  no address of an endpoint
  static absl::StatusOr<sockaddr_un> SocketAddress(absl::string_view address);

  const FileDescriptor& socket() const { return socket_; }

 private:
  LocalEndpoint(FileDescriptor socket, std::string address)
      : socket_(std::move(socket)), address_(std::move(address)) {}

  const FileDescriptor socket_;
  const std::string address_;
};

// Returns "<boot id>/<network namespace>", the same for all processes that run
// under the same kernel and in the same network namespace.
std::string HostIdentity();

// Returns whether the process at the other end of a connected Unix socket runs
// as the user of this one. For a socket that was accepted, that is the process
// that connected; otherwise the one that listened.
bool IsOfThisUser(int socket);

}  // namespace muster

#endif  // COMMON_NET_RPC_LOCAL_ENDPOINT_H_
