#include "common/net/collectives/shm/rank_sockets.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/core/system/poll_timeout.h"
#include "common/net/rpc/secret.h"

namespace muster::internal {
namespace {

constexpr uint64_t kMagic = 0x6d757374'73686d31;  // Contains the version.
constexpr size_t kTokenBytesMax = 64;

// The first message in each direction.
struct Hello {
  uint64_t magic = kMagic;
  uint64_t generation = 0;
  int32_t rank = 0;
  int32_t size = 0;
  // A pid is valid within its namespace only. The socket's credentials are not
  // used: they are those of the process that made the endpoint, which may be
  // this one's parent.
  int64_t pid = 0;
  uint64_t pid_namespace = 0;
  uint64_t one_shot_bytes_max = 0;
  uint64_t staged_bytes_max = 0;
  std::array<char, kTokenBytesMax> token = {};
};

int PollTimeout(absl::Time deadline) {
  return PollTimeoutMilliseconds(deadline - Clock::Real()->Now());
}

bool HaveSameToken(const Hello& a, const Hello& b) {
  return IsSameSecret({a.token.data(), a.token.size()},
                      {b.token.data(), b.token.size()});
}

uint64_t PidNamespace() {
  struct stat stat = {};
  ::stat("/proc/self/ns/pid", &stat);
  return stat.st_ino;
}

pid_t PidOf(const Hello& hello) {
  return hello.pid_namespace == PidNamespace() ? static_cast<pid_t>(hello.pid)
                                               : 0;
}

bool SendHello(const FileDescriptor& socket, const Hello& hello) {
  return send(socket.get(), &hello, sizeof(hello),
              MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(hello);
}

// Returns nullopt if the message is not a hello of this version.
std::optional<Hello> ReceiveHello(const FileDescriptor& socket) {
  Hello hello;
  if (recv(socket.get(), &hello, sizeof(hello), MSG_DONTWAIT) !=
          sizeof(hello) ||
      hello.magic != kMagic) {
    return std::nullopt;
  }
  return hello;
}

absl::Status CheckAgreement(const Hello& mine, const Hello& other) {
  const auto differ = [&](absl::string_view what, uint64_t here,
                          uint64_t there) {
    return absl::InvalidArgumentError(
        absl::StrCat("ranks ", mine.rank, " and ", other.rank, " differ in ",
                     what, ": ", here, " and ", there));
  };
  if (mine.size != other.size) {
    return differ("group size", mine.size, other.size);
  }
  if (mine.generation != other.generation) {
    return differ("generation", mine.generation, other.generation);
  }
  if (mine.one_shot_bytes_max != other.one_shot_bytes_max) {
    return differ("one_shot_bytes_max", mine.one_shot_bytes_max,
                  other.one_shot_bytes_max);
  }
  if (mine.staged_bytes_max != other.staged_bytes_max) {
    return differ("staged_bytes_max", mine.staged_bytes_max,
                  other.staged_bytes_max);
  }
  return absl::OkStatus();
}

class PeerLinker {
 public:
  PeerLinker(const LocalEndpoint& endpoint,
             const SharedMemoryGroupOptions& options)
      : endpoint_(endpoint),
        options_(options),
        links_(options.size),
        is_linked_(options.size, false) {
    hello_.generation = options.generation;
    hello_.rank = options.rank;
    hello_.size = options.size;
    hello_.pid = getpid();
    hello_.pid_namespace = PidNamespace();
    hello_.one_shot_bytes_max = options.tuning.one_shot_bytes_max;
    hello_.staged_bytes_max = options.tuning.staged_bytes_max;
    std::copy(options.token.begin(), options.token.end(), hello_.token.begin());
    is_linked_[options.rank] = true;
  }

  absl::StatusOr<std::vector<PeerLink>> Link(absl::Time deadline) {
    for (int rank = 0; rank < options_.rank; ++rank) {
      RETURN_IF_ERROR(Dial(rank, deadline));
    }
    while (std::count(is_linked_.begin(), is_linked_.end(), false) > 0) {
      RETURN_IF_ERROR(AwaitSocketEvent(deadline));
    }
    return std::move(links_);
  }

 private:
  absl::Status Dial(int rank, absl::Time deadline) {
    ASSIGN_OR_RETURN(const sockaddr_un address,
                     LocalEndpoint::SocketAddress(options_.addresses[rank]));
    PeerLink& link = links_[rank];
    link.socket =
        FileDescriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    // Connecting blocks while the peer's queue of connections is full.
    const timeval timeout = absl::ToTimeval(
        std::max(deadline - Clock::Real()->Now(), absl::Milliseconds(1)));
    setsockopt(link.socket.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout,
               sizeof(timeout));
    if (connect(link.socket.get(), reinterpret_cast<const sockaddr*>(&address),
                sizeof(address)) != 0) {
      return absl::UnavailableError(
          absl::StrCat("rank ", rank, " cannot be reached: ", strerror(errno)));
    }
    // Checks the user before sending the token: after the owner of a name has
    // ended, any process can use the name.
    if (!IsOfThisUser(link.socket.get()) || !SendHello(link.socket, hello_)) {
      return RefusalError(rank);
    }
    return absl::OkStatus();
  }

  absl::Status AwaitSocketEvent(absl::Time deadline) {
    std::vector<pollfd> polled = {{endpoint_.socket().get(), POLLIN, 0}};
    for (const FileDescriptor& stranger : strangers_) {
      polled.push_back({stranger.get(), POLLIN, 0});
    }
    const size_t stranger_count = strangers_.size();
    std::vector<int> dialled;
    for (int rank = 0; rank < options_.rank; ++rank) {
      if (is_linked_[rank]) continue;
      dialled.push_back(rank);
      polled.push_back({links_[rank].socket.get(), POLLIN, 0});
    }
    poll(polled.data(), polled.size(), PollTimeout(deadline));
    if (Clock::Real()->Now() >= deadline) return Late();
    for (size_t i = 0; i < dialled.size(); ++i) {
      if (polled[1 + stranger_count + i].revents != 0) {
        RETURN_IF_ERROR(OnDialledHello(dialled[i]));
      }
    }
    for (size_t i = stranger_count; i-- > 0;) {
      if (polled[1 + i].revents == 0) continue;
      FileDescriptor stranger = std::move(strangers_[i]);
      strangers_.erase(strangers_.begin() + i);
      RETURN_IF_ERROR(OnUnidentifiedHello(std::move(stranger)));
    }
    if (polled[0].revents != 0) Accept();
    return absl::OkStatus();
  }

  absl::Status OnDialledHello(int rank) {
    const std::optional<Hello> hello = ReceiveHello(links_[rank].socket);
    if (!hello.has_value() || !HaveSameToken(*hello, hello_) ||
        hello->rank != rank) {
      return RefusalError(rank);
    }
    RETURN_IF_ERROR(CheckAgreement(hello_, *hello));
    links_[rank].pid = PidOf(*hello);
    is_linked_[rank] = true;
    return absl::OkStatus();
  }

  // Ignores connections without the token.
  absl::Status OnUnidentifiedHello(FileDescriptor socket) {
    const std::optional<Hello> hello = ReceiveHello(socket);
    if (!hello.has_value() || !IsOfThisUser(socket.get()) ||
        !HaveSameToken(*hello, hello_)) {
      return absl::OkStatus();
    }
    // Answers first, so that both ranks report a difference.
    if (!SendHello(socket, hello_)) return absl::OkStatus();
    RETURN_IF_ERROR(CheckAgreement(hello_, *hello));
    const int rank = hello->rank;
    if (rank <= options_.rank || rank >= options_.size || is_linked_[rank]) {
      return absl::InvalidArgumentError(
          absl::StrCat("another process connected as rank ", rank));
    }
    links_[rank] = {.socket = std::move(socket), .pid = PidOf(*hello)};
    is_linked_[rank] = true;
    return absl::OkStatus();
  }

  void Accept() {
    constexpr size_t kStrangersMax = 2 * kSharedMemoryRanksMax;
    FileDescriptor socket(
        accept4(endpoint_.socket().get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket.is_open()) return;
    if (strangers_.size() == kStrangersMax) {
      strangers_.erase(strangers_.begin());
    }
    strangers_.push_back(std::move(socket));
  }

  static absl::Status RefusalError(int rank) {
    return absl::UnavailableError(absl::StrCat(
        "rank ", rank,
        " has closed the connection: it has ended, or its token is another"));
  }

  absl::Status Late() const {
    std::vector<int> missing;
    for (int rank = 0; rank < options_.size; ++rank) {
      if (!is_linked_[rank]) missing.push_back(rank);
    }
    return absl::DeadlineExceededError(
        absl::StrCat("connecting to the ranks of this host: not heard of rank ",
                     absl::StrJoin(missing, ", ")));
  }

  const LocalEndpoint& endpoint_;
  const SharedMemoryGroupOptions& options_;
  Hello hello_;
  std::vector<PeerLink> links_;
  std::vector<bool> is_linked_;
  std::vector<FileDescriptor> strangers_;  // Accepted connections without a
                                           // hello.
};

}  // namespace

absl::StatusOr<std::vector<PeerLink>> LinkPeers(
    const LocalEndpoint& endpoint, const SharedMemoryGroupOptions& options,
    absl::Time deadline) {
  return PeerLinker(endpoint, options).Link(deadline);
}

absl::Status SendParcel(const PeerLink& link, const FileDescriptor& file,
                        const std::array<uint64_t, 2>& words) {
  iovec data = {const_cast<uint64_t*>(words.data()), sizeof(words)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  const int fd = file.get();
  std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  if (sendmsg(link.socket.get(), &message, MSG_NOSIGNAL) != sizeof(words)) {
    return absl::UnavailableError(strerror(errno));
  }
  return absl::OkStatus();
}

absl::StatusOr<Parcel> ReceiveParcel(const PeerLink& link,
                                     const FileDescriptor& interrupt,
                                     absl::Time deadline) {
  pollfd polled[] = {{link.socket.get(), POLLIN, 0},
                     {interrupt.get(), POLLIN, 0}};
  while (poll(polled, 2, PollTimeout(deadline)) <= 0) {
    if (Clock::Real()->Now() >= deadline) {
      return absl::DeadlineExceededError("no message was received");
    }
  }
  if (polled[1].revents != 0) return absl::CancelledError("interrupted");
  Parcel parcel;
  iovec data = {parcel.words.data(), sizeof(parcel.words)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t received =
      recvmsg(link.socket.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof(fd));
    parcel.file = FileDescriptor(fd);
  }
  if (received != sizeof(parcel.words) || !parcel.file.is_open()) {
    return absl::UnavailableError("its process has ended");
  }
  return parcel;
}

FileDescriptor MakeInterrupt() {
  return FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

void Interrupt(const FileDescriptor& interrupt) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written =
      write(interrupt.get(), &one, sizeof(one));
}

PeerWatch::PeerWatch(
    const std::vector<PeerLink>* links,
    std::function<void(int rank, absl::string_view reason)> on_gone)
    : links_(links),
      on_gone_(std::move(on_gone)),
      stop_(MakeInterrupt()),
      thread_([this] { Run(); }) {}

PeerWatch::~PeerWatch() {
  Interrupt(stop_);
  thread_.join();
}

void PeerWatch::Run() {
  // Watches both the socket and the process: a child that has inherited a
  // socket keeps it open, and a pid of another namespace cannot be watched.
  std::vector<FileDescriptor> processes;
  std::vector<int> ranks;
  std::vector<pollfd> polled = {{stop_.get(), POLLIN, 0}};
  for (size_t rank = 0; rank < links_->size(); ++rank) {
    const PeerLink& link = (*links_)[rank];
    if (!link.socket.is_open()) continue;
    processes.emplace_back(
        link.pid > 0 ? static_cast<int>(syscall(SYS_pidfd_open, link.pid, 0))
                     : -1);
    ranks.push_back(static_cast<int>(rank));
    polled.push_back({link.socket.get(), POLLRDHUP, 0});
    polled.push_back({processes.back().get(), POLLIN, 0});
  }
  while (true) {
    poll(polled.data(), polled.size(), -1);
    if (polled[0].revents != 0) return;
    for (size_t i = 0; i < ranks.size(); ++i) {
      pollfd& socket = polled[1 + 2 * i];
      pollfd& process = polled[2 + 2 * i];
      if (socket.revents == 0 && process.revents == 0) continue;
      socket.fd = process.fd = -1;  // poll() ignores these.
      on_gone_(ranks[i], "its process has ended, or closed the group");
    }
  }
}

}  // namespace muster::internal
