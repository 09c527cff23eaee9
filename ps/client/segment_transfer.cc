#include "ps/client/segment_transfer.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/core/system/poll_timeout.h"
#include "common/net/rpc/secret.h"

namespace muster {
namespace {

// Limits the wait for a process that has connected and sends nothing.
constexpr absl::Duration kTokenTimeout = absl::Milliseconds(200);

// Blocks until `file` is readable. Returns false if `deadline` passes first.
bool AwaitReadable(const FileDescriptor& file, absl::Time deadline) {
  while (true) {
    const absl::Duration left = deadline - Clock::Real()->Now();
    if (left <= absl::ZeroDuration()) return false;
    pollfd polled = {file.get(), POLLIN, 0};
    if (poll(&polled, 1, PollTimeoutMilliseconds(left)) > 0) return true;
  }
}

// A message of one byte that carries an open file as ancillary data.
struct FileMessage {
  FileMessage() {
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
  }
  char byte = 'f';
  iovec data = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
};

void SendFile(const FileDescriptor& socket, const FileDescriptor& file) {
  FileMessage parcel;
  cmsghdr* const header = CMSG_FIRSTHDR(&parcel.message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  const int fd = file.get();
  std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  // An error is ignored: it means that the receiver has ended.
  sendmsg(socket.get(), &parcel.message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

FileDescriptor ReceiveFile(const FileDescriptor& socket) {
  FileMessage parcel;
  recvmsg(socket.get(), &parcel.message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  const cmsghdr* const header = CMSG_FIRSTHDR(&parcel.message);
  if (header == nullptr || header->cmsg_level != SOL_SOCKET ||
      header->cmsg_type != SCM_RIGHTS) {
    return FileDescriptor();
  }
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(header), sizeof(fd));
  return FileDescriptor(fd);
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileServer>> FileServer::Open(
    const FileDescriptor* file) {
  ASSIGN_OR_RETURN(std::unique_ptr<LocalEndpoint> endpoint,
                   LocalEndpoint::Listen());
  std::unique_ptr<FileServer> file_server(
      new FileServer(file, std::move(endpoint)));
  if (!file_server->stop_.is_open()) {
    return absl::ResourceExhaustedError("no file descriptor is available");
  }
  return file_server;
}

FileServer::FileServer(const FileDescriptor* file,
                       std::unique_ptr<LocalEndpoint> endpoint)
    : file_(file),
      endpoint_(std::move(endpoint)),
      token_(RandomSecret()),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void FileServer::Stop() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written =
      write(stop_.get(), &one, sizeof(one));
}

void FileServer::Serve(absl::Time deadline) {
  while (true) {
    const absl::Duration left = deadline - Clock::Real()->Now();
    if (left <= absl::ZeroDuration()) return;
    pollfd polled[] = {{stop_.get(), POLLIN, 0},
                       {endpoint_->socket().get(), POLLIN, 0}};
    poll(polled, 2, PollTimeoutMilliseconds(left));
    if (polled[0].revents != 0) return;
    if (polled[1].revents != 0) ServeOne();
  }
}

void FileServer::ServeOne() {
  const FileDescriptor socket(
      accept4(endpoint_->socket().get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket.is_open() || !IsOfThisUser(socket.get())) return;
  std::array<char, kSecretBytes> token;
  if (!AwaitReadable(socket, Clock::Real()->Now() + kTokenTimeout) ||
      recv(socket.get(), token.data(), token.size(), MSG_DONTWAIT) !=
          static_cast<ssize_t>(token.size()) ||
      !IsSameSecret({token.data(), token.size()}, token_)) {
    return;
  }
  SendFile(socket, *file_);
}

absl::StatusOr<FileDescriptor> FetchFile(absl::string_view endpoint,
                                         absl::string_view token,
                                         absl::Time deadline) {
  if (!LocalEndpoint::IsOnThisHost(endpoint)) {
    return absl::FailedPreconditionError("it runs on another host");
  }
  if (token.size() != kSecretBytes) {
    return absl::InvalidArgumentError("the token is invalid");
  }
  ASSIGN_OR_RETURN(const sockaddr_un address,
                   LocalEndpoint::SocketAddress(endpoint));
  const FileDescriptor client(
      socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (connect(client.get(), reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) != 0) {
    return absl::UnavailableError(
        absl::StrCat("its socket cannot be reached: ", std::strerror(errno)));
  }
  // Checked before the token is sent: after the client has ended, any process
  // can listen under the same socket name.
  if (!IsOfThisUser(client.get())) {
    return absl::UnavailableError("it runs as another user");
  }
  if (send(client.get(), token.data(), token.size(),
           MSG_NOSIGNAL | MSG_DONTWAIT) != static_cast<ssize_t>(token.size())) {
    return absl::UnavailableError("it has closed its socket");
  }
  if (!AwaitReadable(client, deadline)) {
    return absl::DeadlineExceededError("it sent no file in time");
  }
  FileDescriptor file = ReceiveFile(client);
  if (!file.is_open()) return absl::UnavailableError("it sent no file");
  return file;
}

}  // namespace muster
