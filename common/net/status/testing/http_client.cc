#include "common/net/status/testing/http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/core/base/status_macros.h"

namespace muster {

absl::StatusOr<RawConnection> RawConnection::Open(absl::string_view url) {
  const size_t colon = url.rfind(':');
  int port = 0;
  if (colon == url.npos ||
      !absl::SimpleAtoi(url.substr(colon + 1, url.find('/', colon) - colon - 1),
                        &port)) {
    return absl::InvalidArgumentError(absl::StrCat("no port in ", url));
  }
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  RawConnection connection(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(connection.fd_, reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) != 0) {
    return absl::UnavailableError(
        absl::StrCat(url, ": ", std::strerror(errno)));
  }
  return connection;
}

RawConnection::RawConnection(RawConnection&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)) {}

RawConnection::~RawConnection() {
  if (fd_ >= 0) close(fd_);
}

bool RawConnection::Send(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(sent);
  }
  return true;
}

absl::StatusOr<std::string> RawConnection::ReadAll(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  std::string received;
  std::vector<char> buffer(1 << 16);
  while (true) {
    pollfd readable = {.fd = fd_, .events = POLLIN, .revents = 0};
    const int64_t left_ms = absl::ToInt64Milliseconds(deadline - absl::Now());
    if (left_ms <= 0 || poll(&readable, 1, static_cast<int>(left_ms)) == 0) {
      return absl::DeadlineExceededError(
          absl::StrCat("the connection is still open; received: ", received));
    }
    const ssize_t count = recv(fd_, buffer.data(), buffer.size(), 0);
    if (count <= 0) return received;
    received.append(buffer.data(), count);
  }
}

absl::StatusOr<HttpAnswer> SendRequest(absl::string_view url,
                                       absl::string_view request) {
  ASSIGN_OR_RETURN(RawConnection connection, RawConnection::Open(url));
  // The result is ignored, because the server may answer and close the
  // connection before it has read the whole request.
  connection.Send(request);
  ASSIGN_OR_RETURN(const std::string received, connection.ReadAll());
  const size_t end = received.find("\r\n\r\n");
  const std::vector<std::string> words =
      absl::StrSplit(received.substr(0, received.find('\r')), ' ');
  HttpAnswer answer;
  if (end == received.npos || words.size() < 2 ||
      !absl::SimpleAtoi(words[1], &answer.status_code)) {
    return absl::DataLossError(absl::StrCat("not an answer: ", received));
  }
  answer.head = received.substr(0, end + 2);
  answer.body = received.substr(end + 4);
  return answer;
}

absl::StatusOr<HttpAnswer> HttpGet(absl::string_view url,
                                   absl::string_view path,
                                   absl::string_view headers) {
  return SendRequest(
      url, absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\n",
                        headers, "\r\n"));
}

}  // namespace muster
