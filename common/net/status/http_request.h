#ifndef COMMON_NET_STATUS_HTTP_REQUEST_H_
#define COMMON_NET_STATUS_HTTP_REQUEST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// The part of an HTTP/1.1 request that HttpServer uses.
struct HttpRequest {
  std::string method;
  std::string path;           // Without the query.
  std::string host;           // The Host header; empty if there is none.
  std::string authorization;  // The Authorization header; empty if none.
  bool has_body = false;
};

// The end of the head of a request.
inline constexpr absl::string_view kHttpHeadEnd = "\r\n\r\n";

// Parses the head of a request, up to its kHttpHeadEnd, which may be missing.
//   kInvalidArgument  the head is malformed: not HTTP/1.0 or 1.1, a folded or
//                     repeated header, or control characters
// RFC: https://www.rfc-editor.org/rfc/rfc9112
absl::StatusOr<HttpRequest> ParseHttpRequest(absl::string_view head);

// True for IPv4 addresses, and for IPv6 addresses without brackets.
bool IsIpAddress(absl::string_view host);

// True if `host_header` ("localhost:8080", "[::1]:80") may address a server on
// `host`. Accepts "localhost", `host`, each of `names`, and IP addresses: only
// loopback addresses if `host` is one, otherwise all.
bool IsOwnHost(absl::string_view host_header, absl::string_view host,
               const std::vector<std::string>& names);

}  // namespace muster

#endif  // COMMON_NET_STATUS_HTTP_REQUEST_H_
