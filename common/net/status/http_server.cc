#include "common/net/status/http_server.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/core/system/file_descriptor.h"
#include "common/core/system/poll_timeout.h"
#include "common/core/system/thread_pool.h"
#include "common/net/cluster/address.h"
#include "common/net/rpc/secret.h"
#include "common/net/status/http_request.h"

namespace muster {
namespace {

// Headers that allow the page to load its own files only.
constexpr absl::string_view kSecurityHeaders =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; "
    "style-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cache-Control: no-store\r\n";

// How long the server waits for clients when it shuts down, and how long it
// reads from a client after it has sent the answer. Closing a connection with
// unread bytes would reset it, and the client would lose the answer.
constexpr absl::Duration kEndTimeout = absl::Seconds(1);
// Pause before the next accept() if there are no free file descriptors.
constexpr absl::Duration kAcceptPause = absl::Milliseconds(100);
constexpr int kAcceptsPerTurnMax = 64;
constexpr int kPublicThreadCount = 2;

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
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 503:
      return "Service Unavailable";
    default:
      return "Error";
  }
}

HttpResponse Refusal(int status_code, absl::string_view text) {
  return {.status_code = status_code, .body = absl::StrCat(text, "\n")};
}

std::string Serialize(const HttpResponse& response, bool with_body) {
  std::string text = absl::StrCat(
      "HTTP/1.1 ", response.status_code, " ", ReasonOf(response.status_code),
      "\r\nContent-Type: ", response.content_type,
      "\r\nContent-Length: ", response.body.size(), "\r\nConnection: close\r\n",
      kSecurityHeaders,
      response.status_code == 405 ? "Allow: GET, HEAD\r\n" : "",
      response.status_code == 401 ? "WWW-Authenticate: Bearer\r\n" : "",
      "\r\n");
  if (with_body) text.append(response.body);
  return text;
}

// Returns a listening socket. "localhost" means 127.0.0.1, and "::" includes
// the IPv4 addresses.
absl::StatusOr<FileDescriptor> Listen(const std::string& host, int port) {
  const std::string address = host == "localhost" ? "127.0.0.1" : host;
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(address.c_str(), absl::StrCat(port).c_str(), &hints, &found);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found,
                                                                 freeaddrinfo);
  const auto failed = [&](absl::string_view why) {
    return absl::UnavailableError(
        absl::StrCat("the status pages cannot be served at ",
                     HostPort{address, port}.ToString(), ": ", why));
  };
  if (error != 0) return failed(gai_strerror(error));
  FileDescriptor fd(
      socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.is_open()) return failed(std::strerror(errno));
  const int on = 1;
  const int off = 0;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (found->ai_family == AF_INET6) {
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  }
  if (bind(fd.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      listen(fd.get(), SOMAXCONN) != 0) {
    return failed("the port is in use, or the address is not this machine's");
  }
  return fd;
}

absl::StatusOr<int> PortOf(const FileDescriptor& fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) !=
      0) {
    return absl::ErrnoToStatus(errno, "the port of the status pages");
  }
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

// A connection of one client: its request or its answer.
struct Connection {
  enum class State {
    kReceiving,  // Receives the head of the request.
    kWaiting,    // Waits until fewer other pages are read and sent.
    kReading,    // Another thread reads the page.
    kSending,    // Sends the answer.
    kDraining,   // Discards further bytes until the client closes.
  };

  FileDescriptor fd;
  absl::Time deadline;
  State state = State::kReceiving;
  std::string bytes;  // The request, or the answer if kSending.
  size_t sent_bytes = 0;
  const HttpPage* page = nullptr;  // Set once the request is valid.
  bool with_body = true;
  bool counts_as_answer = false;  // Towards Options::answer_count_max.
};

}  // namespace

class HttpServer::Implementation {
 public:
  Implementation(const Options& options, std::map<std::string, HttpPage> pages)
      : options_(options),
        pages_(std::move(pages)),
        wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        public_threads_("status_public", kPublicThreadCount),
        threads_("status_pages", options.answer_count_max) {
    MUSTER_CHECK(wake_fd_.is_open());
  }
  ~Implementation() {
    if (!loop_.joinable()) return;
    {
      absl::MutexLock lock(&mutex_);
      ends_ = true;
    }
    Wake();
    loop_.join();
  }

  // Starts the server and returns its port.
  absl::StatusOr<int> Start() {
    ASSIGN_OR_RETURN(listen_fd_, Listen(options_.host, options_.port));
    ASSIGN_OR_RETURN(const int port, PortOf(listen_fd_));
    loop_ = std::thread([this] { Loop(); });
    return port;
  }

 private:
  using Connections = std::map<uint64_t, Connection>;  // The oldest first.
  using State = Connection::State;

  // A page that has been read.
  struct ReadPage {
    uint64_t connection;
    HttpResponse response;
  };

  void Wake() {
    const uint64_t one = 1;
    MUSTER_CHECK(write(wake_fd_.get(), &one, sizeof(one)) == sizeof(one));
  }

  void Loop() {
    std::optional<absl::Time> end;
    while (true) {
      if (!end.has_value() && BeginEnd()) end = clock_->Now() + kEndTimeout;
      if (end.has_value() && (connections_.empty() || clock_->Now() >= *end)) {
        return;
      }
      AwaitEvents(end.value_or(absl::InfiniteFuture()));
      AnswerReadPages();
      const absl::Time now = clock_->Now();
      if (!end.has_value()) Accept(now);
      for (auto it = connections_.begin(); it != connections_.end();) {
        const auto connection = it++;
        if (!Advance(connection->first, connection->second, now)) {
          Close(connection);
        }
      }
    }
  }

  // If the server is to end, stops listening, closes the connections without a
  // valid request, and returns true.
  bool BeginEnd() {
    {
      absl::MutexLock lock(&mutex_);
      if (!ends_) return false;
    }
    listen_fd_ = FileDescriptor();
    for (auto it = connections_.begin(); it != connections_.end();) {
      const auto connection = it++;
      const State state = connection->second.state;
      if (state == State::kReceiving || state == State::kDraining) {
        Close(connection);
      }
    }
    return true;
  }

  void AwaitEvents(absl::Time deadline) {
    std::vector<pollfd> fds = {{wake_fd_.get(), POLLIN, 0}};
    const bool may_accept = clock_->Now() >= next_accept_;
    if (!may_accept) deadline = std::min(deadline, next_accept_);
    if (may_accept && listen_fd_.is_open()) {
      fds.push_back({listen_fd_.get(), POLLIN, 0});
    }
    for (const auto& [id, connection] : connections_) {
      deadline = std::min(deadline, connection.deadline);
      if (connection.state == State::kWaiting && MayRead()) {
        deadline = absl::InfinitePast();
      }
      const bool sends = connection.state == State::kSending;
      const bool receives = connection.state == State::kReceiving ||
                            connection.state == State::kDraining;
      if (!sends && !receives) continue;
      fds.push_back({connection.fd.get(),
                     static_cast<short>(sends ? POLLOUT : POLLIN), 0});
    }
    poll(fds.data(), fds.size(),
         PollTimeoutMilliseconds(deadline - clock_->Now()));
    uint64_t count;
    (void)!read(wake_fd_.get(), &count, sizeof(count));
  }

  bool MayRead() const { return answer_count_ < options_.answer_count_max; }

  void Accept(absl::Time now) {
    for (int i = 0; i < kAcceptsPerTurnMax && now >= next_accept_; ++i) {
      FileDescriptor fd(accept4(listen_fd_.get(), nullptr, nullptr,
                                SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!fd.is_open()) {
        if (errno == EINTR || errno == ECONNABORTED) continue;
        const bool is_none = errno == EAGAIN || errno == EWOULDBLOCK;
        // There are no free file descriptors.
        if (!is_none && !CloseOldest()) next_accept_ = now + kAcceptPause;
        if (is_none) return;
        continue;
      }
      const bool is_full = static_cast<int>(connections_.size()) >=
                           options_.connection_count_max;
      if (is_full && !CloseOldest()) continue;
      Connection& connection = connections_[next_id_++];
      connection.fd = std::move(fd);
      connection.deadline = now + options_.timeout;
    }
  }

  // Closes the oldest connection, preferably one without a complete request.
  // Returns false if pages are being read for all connections.
  bool CloseOldest() {
    auto oldest = std::find_if(connections_.begin(), connections_.end(),
                               [](const auto& entry) {
                                 return entry.second.state == State::kReceiving;
                               });
    if (oldest == connections_.end()) {
      oldest = std::find_if(connections_.begin(), connections_.end(),
                            [](const auto& entry) {
                              return entry.second.state != State::kReading;
                            });
    }
    if (oldest == connections_.end()) return false;
    Close(oldest);
    return true;
  }

  void Close(Connections::iterator connection) {
    if (connection->second.counts_as_answer) --answer_count_;
    connections_.erase(connection);
  }

  // Advances the connection as far as possible without blocking. Returns false
  // if it must be closed.
  bool Advance(uint64_t id, Connection& connection, absl::Time now) {
    if (connection.state == State::kReceiving) Receive(id, connection, now);
    if (connection.state == State::kWaiting) {
      if (MayRead()) {
        ++answer_count_;
        connection.counts_as_answer = true;
        Read(id, connection, &threads_);
      } else if (now >= connection.deadline) {
        Answer(connection, Refusal(503, "too many requests"), now);
      }
    }
    if (connection.state == State::kSending && !SendSome(connection)) {
      return false;
    }
    if (connection.state == State::kDraining && !Drain(connection)) {
      return false;
    }
    return now < connection.deadline;
  }

  void Receive(uint64_t id, Connection& connection, absl::Time now) {
    std::string& bytes = connection.bytes;
    const size_t bytes_max = options_.request_bytes_max;
    while (!absl::StrContains(bytes, kHttpHeadEnd)) {
      if (bytes.size() >= bytes_max) {
        return Answer(connection, Refusal(400, "the request is too large"),
                      now);
      }
      char buffer[4096];
      const ssize_t count =
          recv(connection.fd.get(), buffer,
               std::min(sizeof(buffer), bytes_max - bytes.size()), 0);
      if (count < 0 && errno == EINTR) continue;
      const bool is_open = count < 0 && errno == EAGAIN;
      if (is_open && now >= connection.deadline && !bytes.empty()) {
        return Answer(connection, Refusal(408, "the request took too long"),
                      now);
      }
      if (is_open) return;
      if (count <= 0) {
        connection.state = State::kDraining;
        return;
      }
      bytes.append(buffer, count);
    }
    Dispatch(id, connection, now);
  }

  // Handles a request whose head has been received completely.
  void Dispatch(uint64_t id, Connection& connection, absl::Time now) {
    const absl::string_view bytes = connection.bytes;
    const absl::StatusOr<HttpRequest> request = ParseHttpRequest(
        bytes.substr(0, bytes.find(kHttpHeadEnd) + kHttpHeadEnd.size()));
    if (!request.ok()) {
      return Answer(connection, Refusal(400, request.status().message()), now);
    }
    connection.with_body = request->method != "HEAD";
    if (const auto refusal = Refuse(*request)) {
      return Answer(connection, *refusal, now);
    }
    connection.page = &pages_.at(request->path);
    if (connection.page->is_public) {
      return Read(id, connection, &public_threads_);
    }
    connection.state = State::kWaiting;
    // Longer than a client that does not read its answer can occupy a slot.
    connection.deadline = now + 2 * options_.timeout;
  }

  std::optional<HttpResponse> Refuse(const HttpRequest& request) const {
    if (request.method != "GET" && request.method != "HEAD") {
      return Refusal(405, "only GET and HEAD are allowed");
    }
    if (request.has_body) return Refusal(413, "a request has no body");
    if (request.host.empty()) {
      return Refusal(400, "the request has no Host header");
    }
    if (!IsOwnHost(request.host, options_.host, options_.names)) {
      return Refusal(403, "the Host header names another server");
    }
    const auto page = pages_.find(request.path);
    if (page == pages_.end()) return Refusal(404, "no such page");
    if (!page->second.is_public && !IsAuthorized(request)) {
      return Refusal(401,
                     "expected \"Authorization: Bearer TOKEN\" with the token "
                     "of --status_token_file");
    }
    return std::nullopt;
  }

  bool IsAuthorized(const HttpRequest& request) const {
    if (options_.token.empty()) return true;
    absl::string_view value = request.authorization;
    return absl::ConsumePrefix(&value, "Bearer ") &&
           IsSameSecret(value, options_.token);
  }

  void Read(uint64_t id, Connection& connection, ThreadPool* threads) {
    connection.state = State::kReading;
    connection.deadline = absl::InfiniteFuture();
    threads->Schedule([this, id, page = connection.page] {
      HttpResponse response = page->read();
      {
        absl::MutexLock lock(&mutex_);
        read_pages_.push_back({id, std::move(response)});
      }
      Wake();
    });
  }

  void AnswerReadPages() {
    std::vector<ReadPage> pages;
    {
      absl::MutexLock lock(&mutex_);
      pages.swap(read_pages_);
    }
    for (const ReadPage& page : pages) {
      Answer(connections_.at(page.connection), page.response, clock_->Now());
    }
  }

  void Answer(Connection& connection, const HttpResponse& response,
              absl::Time now) {
    connection.state = State::kSending;
    connection.bytes = Serialize(response, connection.with_body);
    connection.deadline = now + options_.timeout;
  }

  // Sends as much of the answer as possible without blocking. Returns false if
  // the client has closed the connection.
  bool SendSome(Connection& connection) {
    absl::string_view left = connection.bytes;
    left.remove_prefix(connection.sent_bytes);
    while (!left.empty()) {
      const ssize_t count =
          send(connection.fd.get(), left.data(), left.size(), MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return errno == EAGAIN;
      left.remove_prefix(count);
      connection.sent_bytes += count;
    }
    if (connection.counts_as_answer) --answer_count_;
    connection.counts_as_answer = false;
    connection.bytes = std::string();
    shutdown(connection.fd.get(), SHUT_WR);
    connection.state = State::kDraining;
    connection.deadline = clock_->Now() + kEndTimeout;
    return true;
  }

  // Discards received bytes. Returns false if the client has closed the
  // connection.
  static bool Drain(const Connection& connection) {
    char buffer[4096];
    const ssize_t count = recv(connection.fd.get(), buffer, sizeof(buffer), 0);
    return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
  }

  const Options options_;
  const std::map<std::string, HttpPage> pages_;
  Clock* const clock_ = Clock::Real();

  absl::Mutex mutex_;
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<ReadPage> read_pages_ ABSL_GUARDED_BY(mutex_);

  // The following fields are used by the loop's thread only.
  const FileDescriptor wake_fd_;
  FileDescriptor listen_fd_;
  absl::Time next_accept_ = absl::InfinitePast();
  Connections connections_;
  uint64_t next_id_ = 0;
  int answer_count_ = 0;
  ThreadPool public_threads_;
  ThreadPool threads_;
  std::thread loop_;
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
  const std::string host =
      IsWildcardHost(options.host) ? "localhost" : options.host;
  std::string url =
      absl::StrCat("http://", HostPort{host, *port}.ToString(), "/");
  return std::unique_ptr<HttpServer>(
      new HttpServer(std::move(implementation), std::move(url)));
}

}  // namespace muster
