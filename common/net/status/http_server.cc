#include "common/net/status/http_server.h"

#include <civetweb.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/base/clock.h"
#include "common/net/cluster/address.h"

namespace muster {
namespace {

// For the page and its own files, and nothing else.
constexpr absl::string_view kSecurityHeaders =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; "
    "style-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cache-Control: no-store\r\n";

constexpr absl::Duration kWakeInterval = absl::Milliseconds(10);

absl::string_view ReasonOf(int status_code) {
  switch (status_code) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 413:
      return "Content Too Large";
    case 503:
      return "Service Unavailable";
    default:
      return "Error";
  }
}

bool IsIpv4(absl::string_view host) {
  const std::vector<std::string> parts = absl::StrSplit(host, '.');
  return parts.size() == 4 &&
         std::all_of(parts.begin(), parts.end(), [](const std::string& part) {
           int number = 0;
           return !part.empty() && part.size() <= 3 &&
                  std::all_of(part.begin(), part.end(), absl::ascii_isdigit) &&
                  absl::SimpleAtoi(part, &number) && number <= 255;
         });
}

// Only IPv6 addresses have colons.
bool IsIpv6(absl::string_view host) {
  return absl::StrContains(host, ':') &&
         std::all_of(host.begin(), host.end(), [](unsigned char c) {
           return absl::ascii_isxdigit(c) || c == ':' || c == '.';
         });
}

bool IsIpAddress(absl::string_view host) {
  return IsIpv4(host) || IsIpv6(host);
}

// The time that it takes must not tell how much of a guess is right.
bool IsSameSecret(absl::string_view one, absl::string_view other) {
  return one.size() == other.size() &&
         CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

HttpResponse Refusal(int status_code, absl::string_view text) {
  return {.status_code = status_code, .body = absl::StrCat(text, "\n")};
}

absl::string_view HeaderOf(mg_connection* connection, const char* name) {
  const char* const value = mg_get_header(connection, name);
  return value == nullptr ? absl::string_view() : absl::string_view(value);
}

bool HasBody(mg_connection* connection) {
  const absl::string_view length = HeaderOf(connection, "Content-Length");
  return (!length.empty() && length != "0") ||
         !HeaderOf(connection, "Transfer-Encoding").empty();
}

void Send(mg_connection* connection, const HttpResponse& response,
          bool with_body) {
  std::string text = absl::StrCat(
      "HTTP/1.1 ", response.status_code, " ", ReasonOf(response.status_code),
      "\r\nContent-Type: ", response.content_type,
      "\r\nContent-Length: ", response.body.size(), "\r\nConnection: close\r\n",
      kSecurityHeaders,
      response.status_code == 405 ? "Allow: GET, HEAD\r\n" : "",
      response.status_code == 401 ? "WWW-Authenticate: Bearer\r\n" : "",
      "\r\n");
  if (with_body) text.append(response.body);
  mg_write(connection, text.data(), text.size());
}

}  // namespace

bool IsOwnHost(absl::string_view host_header, absl::string_view host,
               const std::vector<std::string>& names) {
  absl::string_view name = host_header;
  if (absl::StartsWith(name, "[")) {
    const size_t end = name.find(']');
    if (end == name.npos) return false;
    name = name.substr(1, end - 1);
  } else {
    name = name.substr(0, name.find(':'));
  }
  if (name.empty()) return false;
  if (absl::EqualsIgnoreCase(name, "localhost") ||
      absl::EqualsIgnoreCase(name, host)) {
    return true;
  }
  // No name can be made to resolve to an address that is written out.
  if (IsIpAddress(name)) return IsLoopbackHost(name) || !IsLoopbackHost(host);
  return std::any_of(names.begin(), names.end(), [name](const auto& own) {
    return absl::EqualsIgnoreCase(name, own);
  });
}

class HttpServer::Implementation {
 public:
  Implementation(const Options& options, std::map<std::string, HttpPage> pages)
      : options_(options), pages_(std::move(pages)) {}
  ~Implementation() {
    if (context_ == nullptr) return;
    // The accept loop looks every two seconds whether it should stop, and at
    // each connection.
    absl::Mutex mutex;
    bool has_stopped = false;
    std::thread waker([this, &mutex, &has_stopped] {
      Clock* const clock = Clock::Real();
      absl::MutexLock lock(&mutex);
      while (!clock->AwaitWithDeadline(&mutex, absl::Condition(&has_stopped),
                                       clock->Now() + kWakeInterval)) {
        char error[256] = {};
        mg_connection* const connection = mg_connect_client(
            wake_host_.c_str(), port_, /*use_ssl=*/0, error, sizeof(error));
        if (connection != nullptr) mg_close_connection(connection);
      }
    });
    mg_stop(context_);
    {
      absl::MutexLock lock(&mutex);
      has_stopped = true;
    }
    waker.join();
  }

  // Returns the port.
  absl::StatusOr<int> Start() {
    static const unsigned initialized = mg_init_library(0);
    (void)initialized;
    const std::string address = absl::StrCat(
        IsIpv6(options_.host)          ? absl::StrCat("[", options_.host, "]")
        : options_.host == "localhost" ? "127.0.0.1"
                                       : options_.host,
        ":", options_.port);
    const std::string threads = absl::StrCat(options_.connection_count_max);
    const std::string timeout =
        absl::StrCat(absl::ToInt64Milliseconds(options_.timeout));
    const std::string size = absl::StrCat(options_.request_bytes_max);
    const char* const settings[] = {"listening_ports",
                                    address.c_str(),
                                    "num_threads",
                                    threads.c_str(),
                                    "connection_queue",
                                    threads.c_str(),
                                    "request_timeout_ms",
                                    timeout.c_str(),
                                    "max_request_size",
                                    size.c_str(),
                                    "enable_keep_alive",
                                    "no",
                                    "decode_url",
                                    "no",
                                    nullptr};
    mg_callbacks callbacks = {};
    callbacks.begin_request = [](mg_connection* connection) {
      return static_cast<Implementation*>(
                 mg_get_request_info(connection)->user_data)
          ->Answer(connection);
    };
    // What clients do wrong must not fill the log.
    callbacks.log_message = [](const mg_connection*, const char*) { return 1; };
    callbacks.log_access = [](const mg_connection*, const char*) { return 1; };
    context_ = mg_start(&callbacks, this, const_cast<const char**>(settings));
    if (context_ == nullptr) {
      return absl::UnavailableError(absl::StrCat(
          "the status pages cannot be served at ", address,
          ": the port is in use, or the address is not this machine's"));
    }
    mg_server_port port = {};
    mg_get_server_ports(context_, 1, &port);
    port_ = port.port;
    wake_host_ = options_.host == "localhost" || options_.host == "0.0.0.0"
                     ? "127.0.0.1"
                 : options_.host == "::" ? "::1"
                                         : options_.host;
    return port_;
  }

 private:
  // Returns the status code, so that the library does not answer.
  int Answer(mg_connection* connection) {
    const mg_request_info* const request = mg_get_request_info(connection);
    const absl::string_view method = request->request_method;
    const HttpResponse response = Respond(connection, *request);
    Send(connection, response, method != "HEAD");
    return response.status_code;
  }

  HttpResponse Respond(mg_connection* connection,
                       const mg_request_info& request) const {
    const absl::string_view method = request.request_method;
    if (method != "GET" && method != "HEAD") {
      return Refusal(405, "only GET and HEAD are allowed");
    }
    if (HasBody(connection)) return Refusal(413, "a request has no body");
    const absl::string_view host = HeaderOf(connection, "Host");
    if (host.empty()) return Refusal(400, "the request has no Host header");
    if (!IsOwnHost(host, options_.host, options_.names)) {
      return Refusal(403, "the Host header names another server");
    }
    const char* const path = request.local_uri_raw;
    const auto page = pages_.find(path == nullptr ? "" : path);
    if (page == pages_.end()) return Refusal(404, "no such page");
    if (!page->second.is_public && !IsAuthorized(connection)) {
      return Refusal(401,
                     "expected \"Authorization: Bearer TOKEN\" with the token "
                     "of --status_token_file");
    }
    return page->second.read();
  }

  bool IsAuthorized(mg_connection* connection) const {
    if (options_.token.empty()) return true;
    absl::string_view value = HeaderOf(connection, "Authorization");
    return absl::ConsumePrefix(&value, "Bearer ") &&
           IsSameSecret(value, options_.token);
  }

  const Options options_;
  const std::map<std::string, HttpPage> pages_;
  mg_context* context_ = nullptr;
  int port_ = 0;
  std::string wake_host_;
};

HttpServer::HttpServer(std::unique_ptr<Implementation> implementation,
                       std::string url)
    : implementation_(std::move(implementation)), url_(std::move(url)) {}

HttpServer::~HttpServer() = default;

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(
    const Options& options, std::map<std::string, HttpPage> pages) {
  if (options.host != "localhost" && !IsIpAddress(options.host)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the host of the status pages is \"", options.host,
        "\"; expected \"localhost\" or an IP address of this machine"));
  }
  if (options.port < 0 || options.port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("the port of the status pages is ", options.port,
                     "; expected 0 to 65535"));
  }
  if (!IsLoopbackHost(options.host) && options.token.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("status pages on ", options.host,
                     " can be read by other machines and require a token"));
  }
  auto implementation =
      std::make_unique<Implementation>(options, std::move(pages));
  const absl::StatusOr<int> port = implementation->Start();
  if (!port.ok()) return port.status();
  const absl::string_view host = IsWildcardHost(options.host)
                                     ? "localhost"
                                     : absl::string_view(options.host);
  std::string url = absl::StrCat(
      "http://",
      IsIpv6(host) ? absl::StrCat("[", host, "]") : std::string(host), ":",
      *port, "/");
  return std::unique_ptr<HttpServer>(
      new HttpServer(std::move(implementation), std::move(url)));
}

}  // namespace muster
