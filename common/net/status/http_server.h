#ifndef COMMON_NET_STATUS_HTTP_SERVER_H_
#define COMMON_NET_STATUS_HTTP_SERVER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster {

struct HttpResponse {
  int status_code = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

// A page of an HttpServer.
struct HttpPage {
  // Called for each request, on a thread of the server. Several calls may run
  // at the same time.
  std::function<HttpResponse()> read;
  // True if the page needs no token. It must not contain anything private.
  bool is_public = false;
};

// Serves read-only pages over HTTP/1.1, for people, probes and scrapers.
//
// One thread exchanges bytes with all clients without blocking, so that silent
// or slow clients do not delay others. Public pages, which probes read, have
// separate threads and do not wait for other pages.
//
// The resources of clients are bounded: the size of a request, the time to send
// it and to read the answer, and the number of connections. At the maximum, a
// new connection replaces the oldest one without a complete request. Only GET
// and HEAD of a known path are answered. Each request must name this server in
// its Host header. Otherwise a web page of another origin could read the pages
// through a name that it resolves to this address (DNS rebinding). Answers
// have headers that forbid browsers to cache or frame them, or to load anything
// from elsewhere.
//
//   400  the request is malformed, too large, or has no Host header
//   401  the page requires the token ("Authorization: Bearer TOKEN")
//   403  the Host header names another server
//   404  no such page
//   405  the method is not GET or HEAD
//   408  the request took too long
//   413  the request has a body
//   503  too many other requests are being answered
//
// Thread-safe.
class HttpServer {
 public:
  struct Options {
    // "localhost", or an IP address of this machine; "0.0.0.0" or "::" for all
    // its addresses.
    std::string host = "localhost";
    int port = 0;  // 0 selects a free port.
    // If not empty, requests for pages that are not public must contain this
    // token. Must not be empty if `host` is not a loopback address.
    std::string token;
    // Names of the server in Host headers, in addition to IP addresses,
    // "localhost" and `host`.
    std::vector<std::string> names;
    int connection_count_max = 256;
    // Maximum number of pages that are read or sent at the same time, not
    // counting public ones. Further requests wait.
    int answer_count_max = 8;
    // Time limit for a client to send its request, and again for it to read
    // the answer.
    absl::Duration timeout = absl::Seconds(5);
    int request_bytes_max = 8 * 1024;
  };

  // Answers requests until the destructor runs. The keys of `pages` are paths,
  // such as "/metrics".
  //   kInvalidArgument  `host` is not an IP address, the port is out of range,
  //                     or a token is required and missing
  //   kUnavailable      the address is in use or not this machine's
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(
      const Options& options, std::map<std::string, HttpPage> pages);

  // Blocks until pages that are being read are finished. Waits at most a second
  // for clients to read their answers.
  ~HttpServer();

  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // "http://localhost:41233/", with the port that was selected.
  const std::string& url() const { return url_; }

 private:
  class Implementation;

  HttpServer(std::unique_ptr<Implementation> implementation, std::string url);

  const std::unique_ptr<Implementation> implementation_;
  const std::string url_;
};

}  // namespace muster

#endif  // COMMON_NET_STATUS_HTTP_SERVER_H_
