#include "common/net/rpc/local_endpoint.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/small_file.h"
#include "common/net/rpc/secret.h"

namespace muster {
namespace {

constexpr absl::string_view kNamePrefix = "muster-";

absl::Status ListenError(absl::string_view what) {
  const std::string text =
      absl::StrCat("Unix socket: ", what, ": ", strerror(errno));
  return errno == EMFILE || errno == ENFILE || errno == ENOBUFS
             ? absl::ResourceExhaustedError(text)
             : absl::UnavailableError(text);
}

}  // namespace

absl::StatusOr<sockaddr_un> LocalEndpoint::SocketAddress(
    absl::string_view address) {
  const std::vector<absl::string_view> parts = absl::StrSplit(address, '/');
  sockaddr_un socket_address = {};
  socket_address.sun_family = AF_UNIX;
  // The fixed prefix of the name ensures that no caller can make this process
  // connect to a socket of another program.
  if (parts.size() != 3 || !absl::StartsWith(parts[2], kNamePrefix) ||
      parts[2].size() + 1 > sizeof(socket_address.sun_path)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", address, "' is no address of a local endpoint"));
  }
  // An abstract name follows a zero byte and is filled up with zeros.
  std::memcpy(socket_address.sun_path + 1, parts[2].data(), parts[2].size());
  return socket_address;
}

absl::StatusOr<std::unique_ptr<LocalEndpoint>> LocalEndpoint::Listen() {
  constexpr int kPendingConnectionsMax = 256;
  FileDescriptor socket(
      ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return ListenError("socket");
  const std::string address =
      absl::StrCat(HostIdentity(), "/", kNamePrefix, RandomSecret());
  ASSIGN_OR_RETURN(const sockaddr_un socket_address, SocketAddress(address));
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&socket_address),
           sizeof(socket_address)) != 0) {
    return ListenError("bind");
  }
  if (listen(socket.get(), kPendingConnectionsMax) != 0) {
    return ListenError("listen");
  }
  return std::unique_ptr<LocalEndpoint>(
      new LocalEndpoint(std::move(socket), address));
}

bool LocalEndpoint::IsOnThisHost(absl::string_view address) {
  const size_t slash = address.rfind('/');
  return slash != absl::string_view::npos && SocketAddress(address).ok() &&
         address.substr(0, slash) == HostIdentity();
}

// Includes the network namespace, because each has its own abstract names.
std::string HostIdentity() {
  std::string boot_id =
      ReadKernelFile("/proc/sys/kernel/random/boot_id").value_or("");
  absl::StripTrailingAsciiWhitespace(&boot_id);
  struct stat network = {};
  stat("/proc/self/ns/net", &network);
  return absl::StrCat(boot_id, "/", network.st_ino);
}

bool IsOfThisUser(int socket) {
  ucred credentials = {};
  socklen_t size_bytes = sizeof(credentials);
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials,
                    &size_bytes) == 0 &&
         credentials.uid == geteuid();
}

}  // namespace muster
