#ifndef COMMON_NET_RPC_LOCAL_ENDPOINT_H_
#define COMMON_NET_RPC_LOCAL_ENDPOINT_H_

#include <sys/un.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/core/system/file_descriptor.h"

namespace muster {

// A listening Unix socket where other processes of this host reach this one.
// It has a random abstract name, which disappears with the process.
//
// The address may be sent to the other process in any way. The address is not
// secret, so both processes check the peer of a connection: IsOfThisUser(), and
// a secret (secret.h) that was sent to the intended process only.
class LocalEndpoint {
 public:
  //   kResourceExhausted  the process has too many open files
  //   kUnavailable        the system does not allow a Unix socket
  static absl::StatusOr<std::unique_ptr<LocalEndpoint>> Listen();

  LocalEndpoint(const LocalEndpoint&) = delete;
  LocalEndpoint& operator=(const LocalEndpoint&) = delete;

  // "<boot id>/<network namespace>/<random name>": printable, at most 128
  // characters.
  const std::string& address() const { return address_; }

  // True if a process with this address runs under the same kernel and in the
  // same network namespace, so that the two can share memory. False if the
  // address is malformed.
  static bool IsOnThisHost(absl::string_view address);

  // Converts an address to the argument of connect(2).
  //   kInvalidArgument  `address` is not the address of an endpoint
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

// Returns true if the process at the other end of a connected Unix socket runs
// as the same user as this process. For an accepted socket that process is the
// one that connected; for a connected socket it is the one that listened.
bool IsOfThisUser(int socket);

}  // namespace muster

#endif  // COMMON_NET_RPC_LOCAL_ENDPOINT_H_
