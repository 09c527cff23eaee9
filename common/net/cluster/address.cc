#include "common/net/cluster/address.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

// Maximum length of a DNS name.
constexpr size_t kHostLengthMax = 253;
constexpr size_t kQuotedAddressLengthMax = 80;

absl::Status BadAddress(absl::string_view text, absl::string_view complaint) {
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", text.substr(0, kQuotedAddressLengthMax), "\" ", complaint));
}

bool IsHostCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' ||
         c == '.' || c == '_';
}

bool IsIpv6Character(char c) {
  return absl::ascii_isxdigit(static_cast<unsigned char>(c)) || c == ':' ||
         c == '.' || c == '%';
}

absl::StatusOr<HostPort> FromParts(absl::string_view text,
                                   absl::string_view host,
                                   absl::string_view port) {
  HostPort result;
  if (host.empty()) {
    return BadAddress(text, "has no host; write \"host:port\"");
  }
  if (host.size() > kHostLengthMax) {
    return BadAddress(text, "has a host longer than 253 characters");
  }
  if (port.empty()) {
    return BadAddress(
        text, absl::StrCat("has no port; write \"", text.substr(0, 64),
                           absl::EndsWith(text, ":") ? "" : ":", "2222\""));
  }
  const bool digits = std::all_of(port.begin(), port.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
  if (!digits || !absl::SimpleAtoi(port, &result.port) || result.port < 1 ||
      result.port > kPortMax) {
    return BadAddress(text, absl::StrCat("has port \"", port.substr(0, 16),
                                         "\"; a port is 1 to 65535"));
  }
  result.host = std::string(host);
  return result;
}

}  // namespace

std::string HostPort::ToString() const {
  const bool ipv6 = host.find(':') != std::string::npos;
  return ipv6 ? absl::StrCat("[", host, "]:", port)
              : absl::StrCat(host, ":", port);
}

absl::StatusOr<HostPort> ParseHostPort(absl::string_view text) {
  absl::string_view rest = text;
  if (const size_t scheme = rest.find("://");
      scheme != absl::string_view::npos) {
    rest.remove_prefix(scheme + 3);
  }
  if (absl::StartsWith(rest, "[")) {
    const size_t close = rest.find(']');
    if (close == absl::string_view::npos) {
      return BadAddress(text, "has no closing bracket");
    }
    const absl::string_view host = rest.substr(1, close - 1);
    if (!std::all_of(host.begin(), host.end(), IsIpv6Character)) {
      return BadAddress(text, "has brackets around something that is not IPv6");
    }
    absl::string_view port = rest.substr(close + 1);
    if (!port.empty() && port[0] != ':') {
      return BadAddress(text, "needs a colon after the bracket");
    }
    if (!port.empty()) port.remove_prefix(1);
    return FromParts(text, host, port);
  }
  const size_t colon = rest.find(':');
  const absl::string_view host = rest.substr(0, colon);
  if (!std::all_of(host.begin(), host.end(), IsHostCharacter)) {
    return BadAddress(text,
                      "is not an address: a host has letters, digits, \".\", "
                      "\"-\" and \"_\"; write \"host:port\"");
  }
  if (colon == absl::string_view::npos) return FromParts(text, host, "");
  const absl::string_view port = rest.substr(colon + 1);
  if (port.find(':') != absl::string_view::npos) {
    return BadAddress(
        text, "has more than one colon; IPv6 is written \"[fd00::1]:2222\"");
  }
  return FromParts(text, host, port);
}

bool IsLoopbackHost(absl::string_view host) {
  // "127.example" is a name, not a loopback address.
  const bool is_number = std::all_of(host.begin(), host.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '.';
  });
  return absl::EqualsIgnoreCase(host, "localhost") ||
         absl::EqualsIgnoreCase(host, "localhost.localdomain") ||
         (is_number && absl::StartsWith(host, "127.")) || host == "::1";
}

bool IsWildcardHost(absl::string_view host) {
  return host == "0.0.0.0" || host == "::" || host == "0" || host == "::0";
}

}  // namespace muster
