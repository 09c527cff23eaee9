#include "common/net/status/http_request.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/core/base/status_macros.h"
#include "common/net/cluster/address.h"

namespace muster {
namespace {

// RFC 9110, 5.6.2.
bool IsTokenCharacter(unsigned char c) {
  return absl::ascii_isalnum(c) ||
         absl::StrContains("!#$%&'*+-.^_`|~", static_cast<char>(c));
}

bool IsToken(absl::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), IsTokenCharacter);
}

// RFC 9110, 5.5.
bool IsHeaderValue(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c == '\t' || (c >= ' ' && c != 0x7f);
  });
}

// The form of request targets that clients send to servers other than proxies:
// RFC 9112, 3.2.1.
bool IsOriginForm(absl::string_view target) {
  return absl::StartsWith(target, "/") &&
         std::all_of(target.begin(), target.end(),
                     [](unsigned char c) { return c > ' ' && c < 0x7f; });
}

absl::Status ParseRequestLine(absl::string_view line, HttpRequest* request) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  if (words.size() != 3 || !IsToken(words[0]) || words[1].empty() ||
      (words[2] != "HTTP/1.1" && words[2] != "HTTP/1.0")) {
    return absl::InvalidArgumentError(
        "expected a request such as \"GET / HTTP/1.1\"");
  }
  request->method = std::string(words[0]);
  const absl::string_view target = words[1];
  // The targets of other methods have other forms. The server refuses these
  // methods later.
  const bool is_read = request->method == "GET" || request->method == "HEAD";
  if (is_read && !IsOriginForm(target)) {
    return absl::InvalidArgumentError("expected a path");
  }
  request->path = std::string(target.substr(0, target.find('?')));
  return absl::OkStatus();
}

absl::Status ParseHeader(absl::string_view line, HttpRequest* request,
                         std::set<std::string>* seen) {
  const size_t colon = line.find(':');
  if (colon == line.npos || !IsToken(line.substr(0, colon))) {
    return absl::InvalidArgumentError("expected headers \"Name: value\"");
  }
  const std::string name = absl::AsciiStrToLower(line.substr(0, colon));
  const absl::string_view value =
      absl::StripAsciiWhitespace(line.substr(colon + 1));
  if (!IsHeaderValue(value)) {
    return absl::InvalidArgumentError("a header has a control character");
  }
  const bool is_used = name == "host" || name == "authorization" ||
                       name == "content-length" || name == "transfer-encoding";
  if (!is_used) return absl::OkStatus();
  if (!seen->insert(name).second) {
    return absl::InvalidArgumentError("a header is repeated");
  }
  if (name == "host") request->host = std::string(value);
  if (name == "authorization") request->authorization = std::string(value);
  if (name == "content-length" && value != "0") request->has_body = true;
  if (name == "transfer-encoding") request->has_body = true;
  return absl::OkStatus();
}

bool IsPort(absl::string_view text) {
  return !text.empty() && text.size() <= 5 &&
         std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

// Returns the host of "host", "host:port", "[ipv6]" or "[ipv6]:port"; unset if
// `header` is something else.
std::optional<std::string> HostOf(absl::string_view header) {
  absl::string_view host = header;
  absl::string_view port;
  if (absl::ConsumePrefix(&host, "[")) {
    const size_t end = host.find(']');
    if (end == host.npos) return std::nullopt;
    port = host.substr(end + 1);
    host = host.substr(0, end);
    if (!absl::StrContains(host, ':') || !IsIpAddress(host)) {
      return std::nullopt;
    }
  } else {
    const size_t end = std::min(host.find(':'), host.size());
    port = host.substr(end);
    host = host.substr(0, end);
  }
  const bool is_whole =
      port.empty() || (absl::ConsumePrefix(&port, ":") && IsPort(port));
  if (host.empty() || !is_whole) return std::nullopt;
  return std::string(host);
}

}  // namespace

absl::StatusOr<HttpRequest> ParseHttpRequest(absl::string_view head) {
  absl::ConsumeSuffix(&head, kHttpHeadEnd);
  const std::vector<absl::string_view> lines = absl::StrSplit(head, "\r\n");
  HttpRequest request;
  RETURN_IF_ERROR(ParseRequestLine(lines.front(), &request));
  std::set<std::string> seen;
  for (size_t i = 1; i < lines.size(); ++i) {
    RETURN_IF_ERROR(ParseHeader(lines[i], &request, &seen));
  }
  return request;
}

bool IsIpAddress(absl::string_view host) {
  const std::string text(host);
  if (text.find('\0') != text.npos) return false;
  in6_addr address;  // Has room for both.
  return inet_pton(AF_INET, text.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

bool IsOwnHost(absl::string_view host_header, absl::string_view host,
               const std::vector<std::string>& names) {
  const std::optional<std::string> name = HostOf(host_header);
  if (!name.has_value()) return false;
  if (absl::EqualsIgnoreCase(*name, "localhost") ||
      absl::EqualsIgnoreCase(*name, host)) {
    return true;
  }
  // DNS rebinding needs a name, so literal IP addresses are safe.
  if (IsIpAddress(*name)) return IsLoopbackHost(*name) || !IsLoopbackHost(host);
  return std::any_of(names.begin(), names.end(), [&name](const auto& own) {
    return absl::EqualsIgnoreCase(*name, own);
  });
}

}  // namespace muster
