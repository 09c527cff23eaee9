#include "common/net/status/page_client.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/core/system/file_descriptor.h"
#include "common/core/system/poll_timeout.h"
#include "common/net/cluster/address.h"

namespace muster {
namespace {

constexpr size_t kAnswerBytesMax = size_t{64} << 20;
constexpr size_t kReadBytes = size_t{64} << 10;

// One request to one server, over a non-blocking socket and with a deadline.
class Exchange {
 public:
  Exchange(HostPort server, absl::Duration timeout)
      : server_(std::move(server)),
        timeout_(timeout),
        deadline_(Clock::Real()->Now() + timeout) {}

  // Connects to the server. Tries all addresses of its name.
  absl::Status Connect() {
    addrinfo hints = {};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int error =
        getaddrinfo(server_.host.c_str(), absl::StrCat(server_.port).c_str(),
                    &hints, &found);
    if (error != 0) {
      return absl::UnavailableError(
          absl::StrCat(server_.ToString(), ": ", gai_strerror(error)));
    }
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(
        found, freeaddrinfo);
    absl::Status status;
    for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
      status = ConnectTo(*at);
      if (status.ok()) break;
    }
    return status;
  }

  absl::Status Send(absl::string_view bytes) {
    while (!bytes.empty()) {
      RETURN_IF_ERROR(Await(POLLOUT));
      const ssize_t sent =
          send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN) return Failed(errno);
      bytes.remove_prefix(std::max<ssize_t>(sent, 0));
    }
    return absl::OkStatus();
  }

  // Returns what the server sends until it closes the connection.
  absl::StatusOr<std::string> Receive() {
    std::string received;
    std::vector<char> buffer(kReadBytes);
    while (true) {
      RETURN_IF_ERROR(Await(POLLIN));
      const ssize_t count = recv(fd_.get(), buffer.data(), buffer.size(), 0);
      if (count == 0) return received;
      if (count < 0 && errno == EAGAIN) continue;
      if (count < 0) return Failed(errno);
      received.append(buffer.data(), count);
      if (received.size() > kAnswerBytesMax) {
        return absl::DataLossError(absl::StrCat(
            server_.ToString(), " sends more than ", kAnswerBytesMax,
            " bytes; it is not a task of Muster"));
      }
    }
  }

 private:
  absl::Status ConnectTo(const addrinfo& address) {
    fd_ = FileDescriptor(socket(address.ai_family,
                                SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd_.is_open()) return Failed(errno);
    if (connect(fd_.get(), address.ai_addr, address.ai_addrlen) == 0) {
      return absl::OkStatus();
    }
    if (errno != EINPROGRESS) return Failed(errno);
    RETURN_IF_ERROR(Await(POLLOUT));
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    return error == 0 ? absl::OkStatus() : Failed(error);
  }

  absl::Status Await(short events) {
    while (true) {
      const int timeout =
          PollTimeoutMilliseconds(deadline_ - Clock::Real()->Now());
      pollfd wait = {.fd = fd_.get(), .events = events, .revents = 0};
      const int ready = timeout == 0 ? 0 : poll(&wait, 1, timeout);
      if (ready > 0) return absl::OkStatus();
      if (ready < 0 && errno == EINTR) continue;
      if (ready < 0) return Failed(errno);
      return absl::DeadlineExceededError(
          absl::StrCat(server_.ToString(), " has not answered within ",
                       absl::FormatDuration(timeout_)));
    }
  }

  absl::Status Failed(int error) const {
    return absl::UnavailableError(
        absl::StrCat(server_.ToString(), ": ", std::strerror(error)));
  }

  const HostPort server_;
  const absl::Duration timeout_;
  const absl::Time deadline_;
  FileDescriptor fd_;
};

absl::Status StatusOf(int status_code, absl::string_view server,
                      absl::string_view path) {
  switch (status_code) {
    case 200:
      return absl::OkStatus();
    case 401:
      return absl::UnauthenticatedError(
          absl::StrCat(server, " wants the token of its --status_token_file"));
    case 404:
      return absl::NotFoundError(absl::StrCat(server, " has no page ", path));
    default:
      return absl::DataLossError(absl::StrCat(
          server, " answers with HTTP status ", status_code, " to ", path));
  }
}

}  // namespace

absl::StatusOr<std::string> GetStatusPage(absl::string_view address,
                                          absl::string_view path,
                                          absl::string_view token,
                                          absl::Duration timeout) {
  absl::ConsumePrefix(&address, "http://");
  absl::ConsumeSuffix(&address, "/");
  ASSIGN_OR_RETURN(const HostPort server, ParseHostPort(address));
  Exchange exchange(server, timeout);
  RETURN_IF_ERROR(exchange.Connect());
  RETURN_IF_ERROR(exchange.Send(absl::StrCat(
      "GET ", path, " HTTP/1.1\r\nHost: ", server.ToString(),
      "\r\nConnection: close\r\n",
      token.empty() ? ""
                    : absl::StrCat("Authorization: Bearer ", token, "\r\n"),
      "\r\n")));
  ASSIGN_OR_RETURN(std::string answer, exchange.Receive());
  const size_t end = answer.find("\r\n\r\n");
  const std::vector<std::string> words =
      absl::StrSplit(answer.substr(0, answer.find('\r')), ' ');
  int status_code = 0;
  if (end == answer.npos || !absl::StartsWith(answer, "HTTP/1.1 ") ||
      words.size() < 2 || !absl::SimpleAtoi(words[1], &status_code)) {
    return absl::DataLossError(
        absl::StrCat(server.ToString(),
                     " does not answer in HTTP; the address of a task's "
                     "status pages is in its first lines"));
  }
  RETURN_IF_ERROR(StatusOf(status_code, server.ToString(), path));
  return answer.substr(end + 4);
}

}  // namespace muster
