#ifndef COMMON_NET_STATUS_TESTING_HTTP_CLIENT_H_
#define COMMON_NET_STATUS_TESTING_HTTP_CLIENT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster {

// A TCP connection to a server on this machine, for tests that send invalid or
// incomplete requests. Not thread-safe.
class RawConnection {
 public:
  // `url` is "http://localhost:41233/".
  static absl::StatusOr<RawConnection> Open(absl::string_view url);
  ~RawConnection();

  RawConnection(RawConnection&& other) noexcept;
  RawConnection& operator=(RawConnection&&) = delete;

  // False if the server has closed the connection.
  bool Send(absl::string_view bytes);

  // Returns what the server sends until it closes the connection.
  //   kDeadlineExceeded  the server has not closed it within `timeout`
  absl::StatusOr<std::string> ReadAll(
      absl::Duration timeout = absl::Seconds(60));

 private:
  explicit RawConnection(int fd) : fd_(fd) {}

  int fd_;
};

struct HttpAnswer {
  int status_code = 0;
  std::string head;  // The status line and the headers.
  std::string body;
};

// Sends `request` as it is and returns the answer.
absl::StatusOr<HttpAnswer> SendRequest(absl::string_view url,
                                       absl::string_view request);

// Gets a page: HttpGet("http://localhost:41233/", "/metrics"). `headers` are
// lines that end with "\r\n".
absl::StatusOr<HttpAnswer> HttpGet(absl::string_view url,
                                   absl::string_view path,
                                   absl::string_view headers = "");

}  // namespace muster

#endif  // COMMON_NET_STATUS_TESTING_HTTP_CLIENT_H_
