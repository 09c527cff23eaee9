#include "common/net/collectives/message/lane_listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/core/base/check.h"
#include "common/core/base/clock.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/net/collectives/message/socket_lane.h"

namespace muster {
namespace {

constexpr size_t kTokenBytes = 32;
constexpr int kBacklog = 1024;
// Strangers who connect and say nothing do not take the place of ranks.
constexpr size_t kUndecidedCountMax = 1024;

// What a rank says first; all ranks run on machines of one byte order, since
// their tensors cross as they lie in memory.
struct Hello {
  char magic[4] = {'M', 'S', 'H', '1'};
  int32_t rank = 0;
  uint64_t generation = 0;
  char token[kTokenBytes] = {};
};
static_assert(sizeof(Hello) == 48);

// What it is answered, with the listener's generation.
struct Answer {
  enum Verdict : uint64_t {
    kWelcome,
    kWrongToken,
    kWrongGeneration,
    kNotAwaited
  };
  uint64_t verdict = kWelcome;
  uint64_t generation = 0;
};

// Owns a descriptor.
class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t size_bytes = 0;
  const sockaddr* generic() const {
    return reinterpret_cast<const sockaddr*>(&storage);
  }
};

// `name` without the "@" that stands for the zero byte of an abstract address.
SocketAddress AbstractAddress(absl::string_view name) {
  SocketAddress address;
  auto& unix_address = reinterpret_cast<sockaddr_un&>(address.storage);
  unix_address.sun_family = AF_UNIX;
  const size_t count = std::min(name.size(), sizeof(unix_address.sun_path) - 1);
  std::memcpy(unix_address.sun_path + 1, name.data(), count);
  address.size_bytes = offsetof(sockaddr_un, sun_path) + 1 + count;
  return address;
}

absl::StatusOr<SocketAddress> Resolve(absl::string_view host,
                                      absl::string_view port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string host_name(host);
  const int error =
      getaddrinfo(host_name.c_str(), std::string(port).c_str(), &hints, &found);
  if (error != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", host_name, "\" is no address: ", gai_strerror(error)));
  }
  SocketAddress address;
  address.size_bytes = found->ai_addrlen;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  return address;
}

absl::StatusOr<SocketAddress> ParseLaneAddress(absl::string_view text) {
  if (absl::StartsWith(text, "unix:@")) return AbstractAddress(text.substr(6));
  const size_t colon = text.rfind(':');
  if (!absl::StartsWith(text, "tcp:") || colon < 4 ||
      colon == absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is no lane's address; expected ",
                     "tcp:host:port or unix:@name"));
  }
  absl::string_view host = text.substr(4, colon - 4);
  if (absl::StartsWith(host, "[") && absl::EndsWith(host, "]")) {
    host = host.substr(1, host.size() - 2);
  }
  return Resolve(host, text.substr(colon + 1));
}

std::string TcpAddressString(const SocketAddress& address) {
  char host[INET6_ADDRSTRLEN];
  if (address.storage.ss_family == AF_INET) {
    const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(address.storage);
    inet_ntop(AF_INET, &ipv4.sin_addr, host, sizeof(host));
    return absl::StrCat("tcp:", host, ":", ntohs(ipv4.sin_port));
  }
  const auto& ipv6 = reinterpret_cast<const sockaddr_in6&>(address.storage);
  inet_ntop(AF_INET6, &ipv6.sin6_addr, host, sizeof(host));
  return absl::StrCat("tcp:[", host, "]:", ntohs(ipv6.sin6_port));
}

std::string NewToken() {
  return absl::StrCat(absl::Hex(RandomIdentity(), absl::kZeroPad16),
                      absl::Hex(RandomIdentity(), absl::kZeroPad16));
}

// Takes as long for every wrong token.
bool IsSameToken(const char* a, absl::string_view b) {
  char difference = 0;
  for (size_t i = 0; i < kTokenBytes; ++i) difference |= a[i] ^ b[i];
  return difference == 0;
}

absl::Status SystemError(absl::string_view what, int error) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(error)));
}

int PollTimeout(absl::Time deadline) {
  const absl::Duration left =
      deadline - Clock::Real()->Now() + absl::Microseconds(999);
  return static_cast<int>(
      std::clamp<int64_t>(absl::ToInt64Milliseconds(left), 0, 1 << 30));
}

bool HasPassed(absl::Time deadline) { return Clock::Real()->Now() >= deadline; }

// Waits for `events` or the deadline.
bool WaitFor(int fd, short events, absl::Time deadline) {
  pollfd entry = {fd, events, 0};
  while (poll(&entry, 1, PollTimeout(deadline)) <= 0) {
    if (HasPassed(deadline)) return false;
  }
  return true;
}

absl::Status WriteAll(int fd, const void* data, size_t size_bytes,
                      absl::Time deadline) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  while (size_bytes > 0) {
    const ssize_t count = send(fd, bytes, size_bytes, MSG_NOSIGNAL);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN) return SystemError("cannot send", errno);
      if (!WaitFor(fd, POLLOUT, deadline)) {
        return absl::DeadlineExceededError("the other end takes nothing");
      }
      continue;
    }
    bytes += count;
    size_bytes -= count;
  }
  return absl::OkStatus();
}

absl::Status ReadAll(int fd, void* data, size_t size_bytes,
                     absl::Time deadline) {
  auto* bytes = static_cast<uint8_t*>(data);
  while (size_bytes > 0) {
    const ssize_t count = recv(fd, bytes, size_bytes, 0);
    if (count == 0) return absl::UnavailableError("it closed the connection");
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN) return SystemError("cannot receive", errno);
      if (!WaitFor(fd, POLLIN, deadline)) {
        return absl::DeadlineExceededError("no answer came");
      }
      continue;
    }
    bytes += count;
    size_bytes -= count;
  }
  return absl::OkStatus();
}

// Whether a Unix socket's other end is a process of this user.
bool IsOfThisUser(int fd) {
  ucred credentials = {};
  socklen_t size_bytes = sizeof(credentials);
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size_bytes) ==
             0 &&
         credentials.uid == geteuid();
}

bool IsUnixAddress(absl::string_view address) {
  return absl::StartsWith(address, "unix:");
}

std::string TransportOf(absl::string_view address) {
  return IsUnixAddress(address) ? "raw Unix socket" : "raw TCP";
}

// The ranks that connect, as they come.
class Acceptance {
 public:
  Acceptance(int listening_fd, const LaneListener& listener,
             absl::Span<const int> ranks, uint64_t generation)
      : listening_fd_(listening_fd),
        listener_(listener),
        missing_(ranks.begin(), ranks.end()),
        generation_(generation) {}

  absl::StatusOr<std::map<int, std::unique_ptr<Lane>>> Run(
      absl::Time deadline) {
    while (!missing_.empty()) {
      if (HasPassed(deadline)) {
        return absl::DeadlineExceededError(absl::StrCat(
            "no lane of generation ", generation_, " was opened by rank",
            missing_.size() == 1 ? " " : "s ", absl::StrJoin(missing_, ", ")));
      }
      std::vector<pollfd> entries;
      for (const Undecided& one : undecided_) {
        entries.push_back({one.socket.fd(), POLLIN, 0});
      }
      entries.push_back({listening_fd_, POLLIN, 0});
      poll(entries.data(), entries.size(), PollTimeout(deadline));
      // From the back, because those that are decided are taken out.
      for (size_t i = undecided_.size(); i-- > 0;) {
        if (entries[i].revents != 0) Read(i);
      }
      if (entries.back().revents != 0) AcceptAll();
    }
    return std::move(lanes_);
  }

 private:
  struct Undecided {
    Socket socket;
    Hello hello;
    size_t read_bytes = 0;
  };

  void AcceptAll() {
    for (;;) {
      Socket socket(accept4(listening_fd_, nullptr, nullptr,
                            SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (socket.fd() < 0) return;
      if (IsUnixAddress(listener_.address()) && !IsOfThisUser(socket.fd())) {
        continue;
      }
      if (undecided_.size() >= kUndecidedCountMax) {
        undecided_.erase(undecided_.begin());
      }
      undecided_.push_back({std::move(socket), {}, 0});
    }
  }

  void Read(size_t index) {
    Undecided& one = undecided_[index];
    const ssize_t count =
        recv(one.socket.fd(),
             reinterpret_cast<uint8_t*>(&one.hello) + one.read_bytes,
             sizeof(Hello) - one.read_bytes, 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count > 0) one.read_bytes += count;
    if (count > 0 && one.read_bytes < sizeof(Hello)) return;
    if (count > 0) Decide(one);
    undecided_.erase(undecided_.begin() + index);
  }

  void Decide(Undecided& one) {
    const Hello& hello = one.hello;
    Answer answer;
    answer.generation = generation_;
    const auto found = std::find(missing_.begin(), missing_.end(), hello.rank);
    if (std::memcmp(hello.magic, Hello().magic, sizeof(hello.magic)) != 0) {
      return;
    }
    if (!IsSameToken(hello.token, listener_.token())) {
      answer = {Answer::kWrongToken, 0};
    } else if (hello.generation != generation_) {
      answer.verdict = Answer::kWrongGeneration;
    } else if (found == missing_.end()) {
      answer.verdict = Answer::kNotAwaited;
    }
    // It fits into the empty buffer of a new socket, or the socket is dead.
    if (send(one.socket.fd(), &answer, sizeof(answer), MSG_NOSIGNAL) !=
            sizeof(answer) ||
        answer.verdict != Answer::kWelcome) {
      return;
    }
    missing_.erase(found);
    lanes_[hello.rank] =
        MakeSocketLane(one.socket.Release(), TransportOf(listener_.address()));
  }

  const int listening_fd_;
  const LaneListener& listener_;
  std::vector<int> missing_;
  const uint64_t generation_;
  std::vector<Undecided> undecided_;
  std::map<int, std::unique_ptr<Lane>> lanes_;
};

absl::StatusOr<Socket> ListenAt(const SocketAddress& address) {
  Socket socket(::socket(address.storage.ss_family,
                         SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.fd() < 0) return SystemError("no socket", errno);
  if (bind(socket.fd(), address.generic(), address.size_bytes) != 0) {
    const int error = errno;
    if (error == EADDRNOTAVAIL) {
      return absl::InvalidArgumentError(absl::StrCat(
          TcpAddressString(address), " is no address of this machine"));
    }
    return SystemError("cannot bind", error);
  }
  if (listen(socket.fd(), kBacklog) != 0) {
    return SystemError("cannot listen", errno);
  }
  return socket;
}

absl::StatusOr<Socket> ConnectTo(const SocketAddress& address,
                                 absl::Time deadline) {
  Socket socket(::socket(address.storage.ss_family,
                         SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.fd() < 0) return SystemError("no socket", errno);
  if (connect(socket.fd(), address.generic(), address.size_bytes) == 0) {
    return socket;
  }
  if (errno != EINPROGRESS && errno != EINTR) {
    return SystemError("cannot connect", errno);
  }
  if (!WaitFor(socket.fd(), POLLOUT, deadline)) {
    return absl::DeadlineExceededError("cannot connect in time");
  }
  int error = 0;
  socklen_t size_bytes = sizeof(error);
  getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size_bytes);
  if (error != 0) return SystemError("cannot connect", error);
  return socket;
}

absl::Status JudgeAnswer(const Answer& answer, int rank, uint64_t generation) {
  switch (answer.verdict) {
    case Answer::kWelcome:
      return absl::OkStatus();
    case Answer::kWrongToken:
      return absl::PermissionDeniedError("it does not know the token");
    case Answer::kWrongGeneration:
      return absl::FailedPreconditionError(absl::StrCat(
          "it is at generation ", answer.generation, ", not at ", generation));
    case Answer::kNotAwaited:
      return absl::FailedPreconditionError(
          absl::StrCat("it does not wait for rank ", rank));
  }
  return absl::UnavailableError("its answer makes no sense");
}

absl::StatusOr<Socket> Open(absl::string_view address, absl::string_view token,
                            int rank, uint64_t generation,
                            absl::Time deadline) {
  ASSIGN_OR_RETURN(const SocketAddress parsed, ParseLaneAddress(address));
  ASSIGN_OR_RETURN(Socket socket, ConnectTo(parsed, deadline));
  if (IsUnixAddress(address) && !IsOfThisUser(socket.fd())) {
    return absl::PermissionDeniedError("a process of another user listens");
  }
  Hello hello;
  hello.rank = rank;
  hello.generation = generation;
  std::memcpy(hello.token, token.data(), std::min(token.size(), kTokenBytes));
  RETURN_IF_ERROR(WriteAll(socket.fd(), &hello, sizeof(hello), deadline));
  Answer answer;
  RETURN_IF_ERROR(ReadAll(socket.fd(), &answer, sizeof(answer), deadline));
  RETURN_IF_ERROR(JudgeAnswer(answer, rank, generation));
  return socket;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LaneListener>> LaneListener::ListenTcp(
    absl::string_view host) {
  ASSIGN_OR_RETURN(const SocketAddress wanted, Resolve(host, "0"));
  ASSIGN_OR_RETURN(Socket socket, ListenAt(wanted));
  SocketAddress bound;
  bound.size_bytes = sizeof(bound.storage);
  getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&bound.storage),
              &bound.size_bytes);
  return std::unique_ptr<LaneListener>(
      new LaneListener(socket.Release(), TcpAddressString(bound), NewToken()));
}

absl::StatusOr<std::unique_ptr<LaneListener>> LaneListener::ListenUnix() {
  const std::string name = absl::StrCat("muster-lane-", NewToken());
  ASSIGN_OR_RETURN(Socket socket, ListenAt(AbstractAddress(name)));
  return std::unique_ptr<LaneListener>(new LaneListener(
      socket.Release(), absl::StrCat("unix:@", name), NewToken()));
}

LaneListener::~LaneListener() { close(fd_); }

absl::StatusOr<std::map<int, std::unique_ptr<Lane>>> LaneListener::Accept(
    absl::Span<const int> ranks, uint64_t generation, absl::Time deadline) {
  return Acceptance(fd_, *this, ranks, generation).Run(deadline);
}

absl::StatusOr<std::unique_ptr<Lane>> ConnectLane(absl::string_view address,
                                                  absl::string_view token,
                                                  int rank, uint64_t generation,
                                                  absl::Time deadline) {
  absl::StatusOr<Socket> socket =
      Open(address, token, rank, generation, deadline);
  if (!socket.ok()) {
    return absl::Status(
        socket.status().code(),
        absl::StrCat("no lane to ", address, ": ", socket.status().message()));
  }
  return MakeSocketLane(socket->Release(), TransportOf(address));
}

}  // namespace muster
