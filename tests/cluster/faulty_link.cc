#include "tests/cluster/faulty_link.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr size_t kPipeBytesMax = 256 << 10;

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

int NewSocket() { return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); }

void MakeQuick(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

void CloseWithReset(int fd) {
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  close(fd);
}

}  // namespace

absl::StatusOr<std::unique_ptr<FaultyLink>> FaultyLink::Create(
    int target_port) {
  const int listener = NewSocket();
  const int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  if (listener < 0 || wake_fd < 0 ||
      bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener, SOMAXCONN) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) !=
          0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no port for a link: errno ", errno));
  }
  fcntl(listener, F_SETFL, fcntl(listener, F_GETFL) | O_NONBLOCK);
  return std::unique_ptr<FaultyLink>(
      new FaultyLink(listener, wake_fd, ntohs(address.sin_port), target_port));
}

FaultyLink::FaultyLink(int listener, int wake_fd, int port, int target_port)
    : listener_(listener),
      wake_fd_(wake_fd),
      port_(port),
      target_port_(target_port),
      thread_([this] { RunLoop(); }) {}

FaultyLink::~FaultyLink() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  eventfd_write(wake_fd_, 1);
  thread_.join();
  for (Connection& connection : connections_) Break(&connection);
  close(listener_);
  close(wake_fd_);
}

void FaultyLink::Reset() { Set({.resets = true}); }

void FaultyLink::ResetCaller(absl::string_view task) {
  Set({.caller = std::string(task)});
}

void FaultyLink::Silence(Direction direction) {
  Set({.holds_to_server = direction != Direction::kToClient,
       .holds_to_client = direction != Direction::kToServer});
}

void FaultyLink::Heal() { Set({}); }

void FaultyLink::Set(Fault fault) {
  {
    absl::MutexLock lock(&mutex_);
    fault_ = std::move(fault);
  }
  eventfd_write(wake_fd_, 1);
}

void FaultyLink::RunLoop() {
  std::vector<pollfd> polled;
  while (true) {
    Fault fault;
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) return;
      fault = fault_;
    }
    for (Connection& connection : connections_) Advance(fault, &connection);
    connections_.remove_if([](const Connection& c) { return c.is_broken; });
    polled = {{wake_fd_, POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const Connection& c : connections_) {
      const auto events = [](bool holds_in, const Pipe& in, bool holds_out,
                             const Pipe& out) {
        const bool reads = !holds_in && !in.has_ended && in.bytes.empty();
        const bool writes = !holds_out && !out.bytes.empty();
        return static_cast<short>((reads ? POLLIN : 0) |
                                  (writes ? POLLOUT : 0));
      };
      polled.push_back({c.client,
                        events(fault.holds_to_server, c.to_server,
                               fault.holds_to_client, c.to_client),
                        0});
      polled.push_back({c.server,
                        events(fault.holds_to_client, c.to_client,
                               fault.holds_to_server, c.to_server),
                        0});
    }
    // A connection whose data is held may be broken, which poll() would report
    // again and again.
    for (pollfd& p : polled) {
      if (p.events == 0) p.fd = -1;
    }
    poll(polled.data(), polled.size(), -1);
    eventfd_t count = 0;
    eventfd_read(wake_fd_, &count);
    if (polled[1].revents != 0) Accept();
  }
}

void FaultyLink::Accept() {
  const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  const int server = NewSocket();
  const sockaddr_in address = Loopback(target_port_);
  if (server < 0 || connect(server, reinterpret_cast<const sockaddr*>(&address),
                            sizeof(address)) != 0) {
    CloseWithReset(client);
    if (server >= 0) close(server);
    return;
  }
  MakeQuick(client);
  MakeQuick(server);
  Connection& connection = connections_.emplace_back();
  connection.client = client;
  connection.server = server;
}

void FaultyLink::Advance(const Fault& fault, Connection* connection) {
  if (fault.resets) return Break(connection);
  if (!fault.holds_to_server) {
    Read(connection->client, &connection->to_server, connection);
    NoteCallers(connection);
    if (!fault.caller.empty() && connection->callers.contains(fault.caller)) {
      return Break(connection);
    }
    Write(connection->server, &connection->to_server, connection);
  }
  if (!fault.holds_to_client && !connection->is_broken) {
    Read(connection->server, &connection->to_client, connection);
    Write(connection->client, &connection->to_client, connection);
  }
  if (connection->to_server.was_shut && connection->to_client.was_shut) {
    Break(connection);
  }
}

void FaultyLink::NoteCallers(Connection* connection) {
  // A name may be split between two reads.
  std::string& text = connection->sent_last;
  text += connection->to_server.bytes;
  for (const char* caller : {"chief 0", "worker 0", "worker 1"}) {
    if (absl::StrContains(text, caller)) connection->callers.insert(caller);
  }
  constexpr size_t kNameLengthMax = 16;
  if (text.size() > kNameLengthMax) {
    text.erase(0, text.size() - kNameLengthMax);
  }
}

void FaultyLink::Read(int fd, Pipe* pipe, Connection* connection) {
  if (connection->is_broken || pipe->has_ended || !pipe->bytes.empty()) return;
  pipe->bytes.resize(kPipeBytesMax);
  const ssize_t count = recv(fd, pipe->bytes.data(), pipe->bytes.size(), 0);
  const int error = errno;
  pipe->bytes.resize(count > 0 ? static_cast<size_t>(count) : 0);
  if (count == 0) pipe->has_ended = true;
  if (count < 0 && error != EAGAIN && error != EINTR) Break(connection);
}

void FaultyLink::Write(int fd, Pipe* pipe, Connection* connection) {
  if (connection->is_broken) return;
  while (!pipe->bytes.empty()) {
    const ssize_t count =
        send(fd, pipe->bytes.data(), pipe->bytes.size(), MSG_NOSIGNAL);
    if (count < 0) {
      if (errno != EAGAIN && errno != EINTR) Break(connection);
      return;
    }
    pipe->bytes.erase(0, static_cast<size_t>(count));
  }
  if (pipe->has_ended && !pipe->was_shut) {
    pipe->was_shut = true;
    shutdown(fd, SHUT_WR);
  }
}

void FaultyLink::Break(Connection* connection) {
  if (connection->is_broken) return;
  connection->is_broken = true;
  CloseWithReset(connection->client);
  CloseWithReset(connection->server);
}

}  // namespace muster
