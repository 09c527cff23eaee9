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
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/core/system/file_descriptor.h"
#include "common/core/system/metrics.h"
#include "common/core/system/poll_timeout.h"
#include "common/net/collectives/message/socket_lane.h"
#include "common/net/collectives/message/socket_stream.h"
#include "common/net/collectives/message/tls_stream.h"
#include "common/net/rpc/bounded_log.h"
#include "common/net/rpc/local_endpoint.h"
#include "common/net/rpc/secret.h"

namespace muster {
namespace {

constexpr int kBacklog = 1024;

constexpr absl::string_view kTcpScheme = "tcp:";
constexpr absl::string_view kTlsScheme = "tls:";

constexpr MetricInfo kRefused = {
    "muster_lane_connections_refused_total",
    "Connections to raw sockets that did not come from the expected ranks."};

// The first message from a connecting rank. Fields are in native byte order.
// All machines of a group have the same byte order, because tensors are also
// sent as they are in memory.
struct SocketHello {
  char magic[4] = {'M', 'S', 'H', '1'};
  int32_t rank = 0;
  uint64_t generation = 0;
  char token[kSecretBytes] = {};
};
static_assert(sizeof(SocketHello) == 48);

// The listener's answer to a hello.
struct Answer {
  enum Verdict : uint64_t {
    kWelcome,
    kWrongToken,
    kWrongGeneration,
    kNotExpected
  };
  uint64_t verdict = kWelcome;
  uint64_t generation = 0;
};

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t size_bytes = 0;
  const sockaddr* generic() const {
    return reinterpret_cast<const sockaddr*>(&storage);
  }
};

// `name` does not include the "@", which stands for the zero byte of an
// abstract address.
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
  if (!(absl::StartsWith(text, kTcpScheme) ||
        absl::StartsWith(text, kTlsScheme)) ||
      colon < 4 || colon == absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is not the address of a lane; expected ",
                     "tcp:host:port, tls:host:port or unix:@name"));
  }
  absl::string_view host = text.substr(4, colon - 4);
  if (absl::StartsWith(host, "[") && absl::EndsWith(host, "]")) {
    host = host.substr(1, host.size() - 2);
  }
  return Resolve(host, text.substr(colon + 1));
}

// "10.0.0.7" or "[::1]".
std::string HostString(const SocketAddress& address) {
  char host[INET6_ADDRSTRLEN] = {};
  if (address.storage.ss_family == AF_INET) {
    const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(address.storage);
    inet_ntop(AF_INET, &ipv4.sin_addr, host, sizeof(host));
    return host;
  }
  if (address.storage.ss_family != AF_INET6) return "this host";
  const auto& ipv6 = reinterpret_cast<const sockaddr_in6&>(address.storage);
  inet_ntop(AF_INET6, &ipv6.sin6_addr, host, sizeof(host));
  return absl::StrCat("[", host, "]");
}

std::string HostAndPortString(const SocketAddress& address) {
  // The port has the same offset in IPv4 and IPv6 addresses.
  const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(address.storage);
  return absl::StrCat(HostString(address), ":", ntohs(ipv4.sin_port));
}

absl::Status SystemError(absl::string_view what, int error) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(error)));
}

int PollTimeout(absl::Time deadline) {
  return PollTimeoutMilliseconds(deadline - Clock::Real()->Now());
}

bool HasPassed(absl::Time deadline) { return Clock::Real()->Now() >= deadline; }

// Waits for `events`. Returns false if the deadline passes first.
bool WaitFor(int fd, short events, absl::Time deadline) {
  pollfd entry = {fd, events, 0};
  while (poll(&entry, 1, PollTimeout(deadline)) <= 0) {
    if (HasPassed(deadline)) return false;
  }
  return true;
}

absl::Status FinishHandshake(SocketStream& stream, absl::Time deadline) {
  for (;;) {
    ASSIGN_OR_RETURN(const bool is_finished, stream.Handshake());
    if (is_finished) return absl::OkStatus();
    if (!WaitFor(stream.fd(), POLLIN, deadline)) {
      return absl::DeadlineExceededError("no answer was received");
    }
  }
}

absl::Status WriteAll(SocketStream& stream, const void* data, size_t size_bytes,
                      absl::Time deadline) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  while (size_bytes > 0) {
    ASSIGN_OR_RETURN(const size_t count,
                     stream.Write({{const_cast<uint8_t*>(bytes), size_bytes}}));
    if (count == 0 && !WaitFor(stream.fd(), POLLOUT, deadline)) {
      return absl::DeadlineExceededError("the other end takes nothing");
    }
    bytes += count;
    size_bytes -= count;
  }
  return absl::OkStatus();
}

absl::Status ReadAll(SocketStream& stream, void* data, size_t size_bytes,
                     absl::Time deadline) {
  auto* bytes = static_cast<uint8_t*>(data);
  while (size_bytes > 0) {
    ASSIGN_OR_RETURN(const size_t count, stream.Read({{bytes, size_bytes}}));
    if (count == 0 && !WaitFor(stream.fd(), POLLIN, deadline)) {
      return absl::DeadlineExceededError("no answer was received");
    }
    bytes += count;
    size_bytes -= count;
  }
  return absl::OkStatus();
}

bool IsUnixAddress(absl::string_view address) {
  return absl::StartsWith(address, "unix:");
}

bool IsTlsAddress(absl::string_view address) {
  return absl::StartsWith(address, kTlsScheme);
}

std::string TransportOf(absl::string_view address) {
  if (IsUnixAddress(address)) return "raw Unix socket";
  return IsTlsAddress(address) ? "raw TCP with TLS" : "raw TCP";
}

std::unique_ptr<SocketStream> MakeStream(FileDescriptor socket,
                                         absl::string_view address,
                                         TlsRole role,
                                         absl::string_view token) {
  const int fd = socket.Release();
  if (!IsTlsAddress(address)) return MakePlaintextStream(fd);
  return MakeTlsStream(fd, {.role = role, .key = std::string(token)});
}

// Counts and logs a refusal by any listener of this process.
void NoteRefusal(absl::string_view peer, absl::string_view why) {
  static Counter* const refused = GetCounter(kRefused);
  static auto* const log = new BoundedLog;
  refused->Add();
  log->Write(absl::StrCat("refused a raw socket of ", peer, ": ", why));
}

// Accepts connections until all expected ranks have connected.
class Acceptance {
 public:
  Acceptance(int listening_fd, const LaneListener& listener,
             absl::Span<const int> ranks, uint64_t generation,
             absl::Duration silence_timeout)
      : listening_fd_(listening_fd),
        listener_(listener),
        missing_(ranks.begin(), ranks.end()),
        generation_(generation),
        silence_timeout_(silence_timeout) {}

  absl::StatusOr<std::map<int, std::unique_ptr<Lane>>> Run(
      absl::Time deadline) {
    while (!missing_.empty()) {
      if (HasPassed(deadline)) {
        return absl::DeadlineExceededError(absl::StrCat(
            "no lane of generation ", generation_, " was opened by rank",
            missing_.size() == 1 ? " " : "s ", absl::StrJoin(missing_, ", ")));
      }
      std::vector<pollfd> entries;
      absl::Time wake_time = deadline;
      for (const Undecided& one : undecided_) {
        entries.push_back({one.stream->fd(), POLLIN, 0});
        wake_time = std::min(wake_time, one.deadline);
      }
      entries.push_back({listening_fd_, POLLIN, 0});
      poll(entries.data(), entries.size(), PollTimeout(wake_time));
      // From the back, because the loop removes connections that are decided.
      for (size_t i = undecided_.size(); i-- > 0;) {
        if (entries[i].revents != 0) {
          Advance(i);
        } else if (HasPassed(undecided_[i].deadline)) {
          Refuse(i, "it did not say which rank it is in time");
        }
      }
      if (entries.back().revents != 0) AcceptAll();
    }
    return std::move(lanes_);
  }

 private:
  struct Undecided {
    std::unique_ptr<SocketStream> stream;
    std::string peer;  // Its address.
    absl::Time deadline;
    bool is_connected = false;  // The handshake is finished.
    SocketHello hello = {};
    size_t read_bytes = 0;
  };

  void AcceptAll() {
    for (;;) {
      SocketAddress peer;
      peer.size_bytes = sizeof(peer.storage);
      FileDescriptor socket(
          accept4(listening_fd_, reinterpret_cast<sockaddr*>(&peer.storage),
                  &peer.size_bytes, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket.is_open()) return;
      Add(std::move(socket), HostString(peer));
    }
  }

  // Refuses a connection that exceeds a limit before allocating anything for
  // it.
  void Add(FileDescriptor socket, std::string peer) {
    if (IsUnixAddress(listener_.address()) && !IsOfThisUser(socket.get())) {
      return NoteRefusal(peer, "its process is of another user");
    }
    const auto is_of_peer = [&](const Undecided& one) {
      return one.peer == peer;
    };
    if (std::count_if(undecided_.begin(), undecided_.end(), is_of_peer) >=
        LaneListener::kUndecidedCountOfAddressMax) {
      return NoteRefusal(peer, "it has too many connections without a rank");
    }
    // Drops the oldest silent connection, so that such connections do not keep
    // ranks out.
    if (undecided_.size() >= LaneListener::kUndecidedCountMax) {
      Refuse(0, "others have connected since, and it has said nothing");
    }
    undecided_.push_back(
        {MakeStream(std::move(socket), listener_.address(), TlsRole::kServer,
                    listener_.token()),
         std::move(peer),
         Clock::Real()->Now() + LaneListener::kHandshakeTimeout});
  }

  void Refuse(size_t index, absl::string_view why) {
    NoteRefusal(undecided_[index].peer, why);
    undecided_.erase(undecided_.begin() + index);
  }

  void Advance(size_t index) {
    const absl::StatusOr<bool> is_complete = ReadHello(undecided_[index]);
    if (!is_complete.ok()) return Refuse(index, is_complete.status().message());
    if (!*is_complete) return;
    const absl::Status status = Decide(undecided_[index]);
    if (!status.ok()) return Refuse(index, status.message());
    undecided_.erase(undecided_.begin() + index);
  }

  // Returns true if the whole hello has arrived.
  static absl::StatusOr<bool> ReadHello(Undecided& one) {
    if (!one.is_connected) {
      ASSIGN_OR_RETURN(one.is_connected, one.stream->Handshake());
      if (!one.is_connected) return false;
    }
    ASSIGN_OR_RETURN(
        const size_t count,
        one.stream->Read(
            {{reinterpret_cast<uint8_t*>(&one.hello) + one.read_bytes,
              sizeof(SocketHello) - one.read_bytes}}));
    one.read_bytes += count;
    return one.read_bytes == sizeof(SocketHello);
  }

  // Answers a hello. Makes a lane if the rank is expected. Otherwise returns an
  // error that says why the connection is refused.
  absl::Status Decide(Undecided& one) {
    const SocketHello& hello = one.hello;
    if (std::memcmp(hello.magic, SocketHello().magic, sizeof(hello.magic)) !=
        0) {
      return absl::InvalidArgumentError("what it sent is not a hello");
    }
    const auto found = std::find(missing_.begin(), missing_.end(), hello.rank);
    Answer answer;
    answer.generation = generation_;
    absl::Status status;
    if (!IsSameSecret({hello.token, kSecretBytes}, listener_.token())) {
      answer = {Answer::kWrongToken, 0};
      status = absl::PermissionDeniedError("it has another token");
    } else if (hello.generation != generation_) {
      answer.verdict = Answer::kWrongGeneration;
      status = absl::FailedPreconditionError(
          absl::StrCat("it is at generation ", hello.generation));
    } else if (found == missing_.end()) {
      answer.verdict = Answer::kNotExpected;
      status = absl::FailedPreconditionError(
          absl::StrCat("rank ", hello.rank, " is not expected"));
    }
    // The answer fits into the empty send buffer of a new socket. If it does
    // not, the socket is broken.
    const absl::StatusOr<size_t> sent =
        one.stream->Write({{&answer, sizeof(answer)}});
    RETURN_IF_ERROR(status);
    RETURN_IF_ERROR(sent.status());
    if (*sent != sizeof(answer)) {
      return absl::UnavailableError("it takes no answer");
    }
    missing_.erase(found);
    lanes_[hello.rank] =
        MakeSocketLane(std::move(one.stream), TransportOf(listener_.address()),
                       silence_timeout_);
    return absl::OkStatus();
  }

  const int listening_fd_;
  const LaneListener& listener_;
  std::vector<int> missing_;
  const uint64_t generation_;
  const absl::Duration silence_timeout_;
  std::vector<Undecided> undecided_;
  std::map<int, std::unique_ptr<Lane>> lanes_;
};

absl::StatusOr<FileDescriptor> ListenAt(const SocketAddress& address) {
  FileDescriptor socket(::socket(address.storage.ss_family,
                                 SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                                 0));
  if (!socket.is_open()) return SystemError("no socket", errno);
  // Allows to reuse a port whose last connections are still in TIME_WAIT.
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(socket.get(), address.generic(), address.size_bytes) != 0) {
    const int error = errno;
    const std::string name = HostAndPortString(address);
    if (error == EADDRNOTAVAIL) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " is not an address of this machine"));
    }
    return SystemError(absl::StrCat("cannot listen on ", name), error);
  }
  if (listen(socket.get(), kBacklog) != 0) {
    return SystemError("cannot listen", errno);
  }
  return socket;
}

absl::StatusOr<FileDescriptor> ConnectTo(const SocketAddress& address,
                                         absl::Time deadline) {
  FileDescriptor socket(::socket(address.storage.ss_family,
                                 SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                                 0));
  if (!socket.is_open()) return SystemError("no socket", errno);
  if (connect(socket.get(), address.generic(), address.size_bytes) == 0) {
    return socket;
  }
  if (errno != EINPROGRESS && errno != EINTR) {
    return SystemError("cannot connect", errno);
  }
  if (!WaitFor(socket.get(), POLLOUT, deadline)) {
    return absl::DeadlineExceededError("cannot connect in time");
  }
  int error = 0;
  socklen_t size_bytes = sizeof(error);
  getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size_bytes);
  if (error != 0) return SystemError("cannot connect", error);
  return socket;
}

absl::Status CheckAnswer(const Answer& answer, int rank, uint64_t generation) {
  switch (answer.verdict) {
    case Answer::kWelcome:
      return absl::OkStatus();
    case Answer::kWrongToken:
      return absl::PermissionDeniedError("it has a different token");
    case Answer::kWrongGeneration:
      return absl::FailedPreconditionError(absl::StrCat(
          "it is at generation ", answer.generation, ", not at ", generation));
    case Answer::kNotExpected:
      return absl::FailedPreconditionError(
          absl::StrCat("it does not wait for rank ", rank));
  }
  return absl::UnavailableError("its answer is invalid");
}

absl::StatusOr<std::unique_ptr<SocketStream>> Open(absl::string_view address,
                                                   absl::string_view token,
                                                   int rank,
                                                   uint64_t generation,
                                                   absl::Time deadline) {
  ASSIGN_OR_RETURN(const SocketAddress parsed, ParseLaneAddress(address));
  if (IsTlsAddress(address) && token.size() != kSecretBytes) {
    return absl::PermissionDeniedError(
        absl::StrCat("TLS needs a token of ", kSecretBytes,
                     " characters, and this one has ", token.size()));
  }
  ASSIGN_OR_RETURN(FileDescriptor socket, ConnectTo(parsed, deadline));
  if (IsUnixAddress(address) && !IsOfThisUser(socket.get())) {
    return absl::PermissionDeniedError("a process of another user listens");
  }
  std::unique_ptr<SocketStream> stream =
      MakeStream(std::move(socket), address, TlsRole::kClient, token);
  RETURN_IF_ERROR(FinishHandshake(*stream, deadline));
  SocketHello hello;
  hello.rank = rank;
  hello.generation = generation;
  std::memcpy(hello.token, token.data(), std::min(token.size(), kSecretBytes));
  RETURN_IF_ERROR(WriteAll(*stream, &hello, sizeof(hello), deadline));
  Answer answer;
  RETURN_IF_ERROR(ReadAll(*stream, &answer, sizeof(answer), deadline));
  RETURN_IF_ERROR(CheckAnswer(answer, rank, generation));
  return stream;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LaneListener>> LaneListener::ListenTcp(
    absl::string_view host, const LaneListenerOptions& options) {
  ASSIGN_OR_RETURN(const SocketAddress wanted,
                   Resolve(host, absl::StrCat(options.port)));
  ASSIGN_OR_RETURN(FileDescriptor socket, ListenAt(wanted));
  SocketAddress bound;
  bound.size_bytes = sizeof(bound.storage);
  getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound.storage),
              &bound.size_bytes);
  return std::unique_ptr<LaneListener>(
      new LaneListener(socket.Release(),
                       absl::StrCat(options.encrypts ? kTlsScheme : kTcpScheme,
                                    HostAndPortString(bound)),
                       RandomSecret(), options.silence_timeout));
}

absl::StatusOr<std::unique_ptr<LaneListener>> LaneListener::ListenUnix() {
  const std::string name = absl::StrCat("muster-lane-", RandomSecret());
  ASSIGN_OR_RETURN(FileDescriptor socket, ListenAt(AbstractAddress(name)));
  return std::unique_ptr<LaneListener>(
      new LaneListener(socket.Release(), absl::StrCat("unix:@", name),
                       RandomSecret(), kLaneSilenceTimeout));
}

LaneListener::~LaneListener() { close(fd_); }

absl::StatusOr<std::map<int, std::unique_ptr<Lane>>> LaneListener::Accept(
    absl::Span<const int> ranks, uint64_t generation, absl::Time deadline) {
  return Acceptance(fd_, *this, ranks, generation, silence_timeout_)
      .Run(deadline);
}

bool IsLaneAddressProtected(absl::string_view address) {
  return IsTlsAddress(address) || IsUnixAddress(address);
}

absl::StatusOr<std::unique_ptr<Lane>> ConnectLane(
    absl::string_view address, absl::string_view token, int rank,
    uint64_t generation, absl::Time deadline, absl::Duration silence_timeout) {
  absl::StatusOr<std::unique_ptr<SocketStream>> stream =
      Open(address, token, rank, generation, deadline);
  if (!stream.ok()) {
    return absl::Status(
        stream.status().code(),
        absl::StrCat("no lane to ", address, ": ", stream.status().message()));
  }
  return MakeSocketLane(*std::move(stream), TransportOf(address),
                        silence_timeout);
}

}  // namespace muster
