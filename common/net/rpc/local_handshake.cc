#include "common/net/rpc/local_handshake.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/status_macros.h"
#include "common/net/rpc/secret.h"

namespace muster {
namespace {

absl::StatusOr<FileDescriptor> ConnectOne(const sockaddr_un& address,
                                          absl::string_view token) {
  FileDescriptor connected(
      socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (connect(connected.get(), reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the caller's Unix socket cannot be reached: ", std::strerror(errno)));
  }
  // Checked before the token is sent: once a process has ended, any other
  // process may listen under its name.
  if (!IsOfThisUser(connected.get())) {
    return absl::FailedPreconditionError("the caller runs as another user");
  }
  if (send(connected.get(), token.data(), token.size(),
           MSG_NOSIGNAL | MSG_DONTWAIT) != static_cast<ssize_t>(token.size())) {
    return absl::FailedPreconditionError(
        "the caller has closed its Unix socket");
  }
  return connected;
}

}  // namespace

bool HasEnded(const FileDescriptor& tether) {
  pollfd polled = {tether.get(), POLLRDHUP, 0};
  return poll(&polled, 1, 0) != 0;
}

absl::StatusOr<LocalOffer> LocalOffer::Make() {
  ASSIGN_OR_RETURN(std::unique_ptr<LocalEndpoint> endpoint,
                   LocalEndpoint::Listen());
  return LocalOffer(std::move(endpoint));
}

LocalOffer::LocalOffer(std::unique_ptr<LocalEndpoint> endpoint)
    : endpoint_(std::move(endpoint)) {
  request_.set_endpoint(endpoint_->address());
  request_.set_token(RandomSecret());
}

absl::StatusOr<LocalSockets> LocalOffer::Take() {
  LocalSockets sockets;
  ASSIGN_OR_RETURN(sockets.tether, TakeOne());
  ASSIGN_OR_RETURN(sockets.calls, TakeOne());
  return sockets;
}

absl::StatusOr<FileDescriptor> LocalOffer::TakeOne() {
  while (true) {
    FileDescriptor accepted(accept4(endpoint_->socket().get(), nullptr, nullptr,
                                    SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!accepted.is_open()) {
      return absl::FailedPreconditionError(
          "the server has not connected to this task's Unix socket");
    }
    std::array<char, kSecretBytes> shown;
    if (IsOfThisUser(accepted.get()) &&
        recv(accepted.get(), shown.data(), shown.size(), MSG_DONTWAIT) ==
            static_cast<ssize_t>(shown.size()) &&
        IsSameSecret({shown.data(), shown.size()}, request_.token())) {
      return accepted;
    }
  }
}

absl::StatusOr<LocalSockets> ConnectTo(
    const proto::OpenLocalConnectionRequest& offer) {
  if (!LocalEndpoint::IsOnThisHost(offer.endpoint())) {
    return absl::FailedPreconditionError("the caller runs on another host");
  }
  if (offer.token().size() != kSecretBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the token has ", offer.token().size(),
                     " bytes; expected ", kSecretBytes));
  }
  ASSIGN_OR_RETURN(const sockaddr_un address,
                   LocalEndpoint::SocketAddress(offer.endpoint()));
  LocalSockets sockets;
  ASSIGN_OR_RETURN(sockets.tether, ConnectOne(address, offer.token()));
  ASSIGN_OR_RETURN(sockets.calls, ConnectOne(address, offer.token()));
  return sockets;
}

}  // namespace muster
