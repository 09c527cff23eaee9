#ifndef COMMON_IO_STORAGE_HTTP_CLIENT_H_
#define COMMON_IO_STORAGE_HTTP_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace muster {

// Sends requests that are signed with Amazon's Signature Version 4, one at a
// time per thread, over connections that are kept. TLS certificates are
// verified. Redirects are not followed: they would send the signature to
// another host. Thread-safe.
class HttpClient {
 public:
  // A slower store counts as stalled. A part of 16 MiB takes at most 17
  // minutes.
  static constexpr int kBulkBytesPerSecondMin = 16 << 10;

  struct Options {
    std::string region;
    std::string access_key_id;
    std::string secret_access_key;
    std::string ca_file;  // Empty: the system's certificates.
    absl::Duration connect_timeout = absl::Seconds(10);
    // A request fails if it is slower than kBulkBytesPerSecondMin for this
    // long. A request that moves less than 64 KiB fails if it makes no progress
    // for this long.
    absl::Duration stall_timeout = absl::Seconds(20);
  };

  struct Request {
    std::string method;                // "GET", "PUT", "POST" or "DELETE".
    std::string url;                   // Escaped, and its query is sorted.
    std::vector<std::string> headers;  // "Name: value".
    absl::Span<const uint8_t> body;
    // Receives the body of a successful response. If empty, Response::body
    // does.
    absl::Span<uint8_t> sink;
  };

  struct Response {
    int status_code = 0;
    std::map<std::string, std::string> headers;  // Names are in lower case.
    std::string body;                            // Unless the sink received it.
    size_t sink_bytes = 0;  // Bytes that were written to the sink.

    // Returns "" for a header that is missing.
    absl::string_view header(absl::string_view name) const;
  };

  explicit HttpClient(Options options);
  ~HttpClient();

  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Sends the request and reads the response, whatever its status code is.
  //   kUnavailable         no connection, or it broke; a retry may help
  //   kDeadlineExceeded    no connection within the timeout, or a stall
  //   kFailedPrecondition  the server's certificate is not trusted
  //   kInvalidArgument     the URL is malformed
  //   kDataLoss            the response is longer than the sink, or than 16 MiB
  absl::StatusOr<Response> Send(const Request& request);

 private:
  void* TakeHandle() ABSL_LOCKS_EXCLUDED(mutex_);
  void ReturnHandle(void* handle) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  absl::Mutex mutex_;
  std::vector<void*> idle_ ABSL_GUARDED_BY(mutex_);  // CURL handles.
};

}  // namespace muster

#endif  // COMMON_IO_STORAGE_HTTP_CLIENT_H_
