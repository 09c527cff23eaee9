#include "tests/cluster/faulty_link.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"

namespace muster {
namespace {

constexpr size_t kPipeBytesMax = 256 << 10;
constexpr size_t kRecordingBytesMax = 16 << 20;

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
      settings_({.target_port = target_port}),
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

void FaultyLink::Duplicate() {
  absl::MutexLock lock(&mutex_);
  settings_.duplicates = true;
}

void FaultyLink::Replay() {
  {
    absl::MutexLock lock(&mutex_);
    settings_.replays = true;
  }
  eventfd_write(wake_fd_, 1);
}

void FaultyLink::Rewrite(absl::string_view text,
                         absl::string_view replacement) {
  absl::MutexLock lock(&mutex_);
  settings_.replacements.emplace_back(text, replacement);
}

void FaultyLink::Delay(absl::Duration delay) {
  {
    absl::MutexLock lock(&mutex_);
    settings_.delay = delay;
  }
  eventfd_write(wake_fd_, 1);
}

void FaultyLink::CutAfter(std::vector<int64_t> byte_counts) {
  absl::MutexLock lock(&mutex_);
  settings_.cuts.assign(byte_counts.rbegin(), byte_counts.rend());
}

int FaultyLink::pending_cut_count() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(settings_.cuts.size());
}

void FaultyLink::Retarget(int target_port) {
  absl::MutexLock lock(&mutex_);
  settings_.target_port = target_port;
}

void FaultyLink::Set(Fault fault) {
  {
    absl::MutexLock lock(&mutex_);
    fault_ = std::move(fault);
  }
  eventfd_write(wake_fd_, 1);
}

void FaultyLink::RunLoop() {
  while (true) {
    Fault fault;
    Settings settings;
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) return;
      fault = fault_;
      settings = settings_;
      settings_.replays = false;
    }
    if (settings.replays) ReplayRecordings(settings);
    for (Connection& connection : connections_) {
      Advance(fault, settings, &connection);
    }
    for (Connection& connection : connections_) {
      Connection*& duplicate = connection.duplicate;
      if (duplicate == nullptr) continue;
      if (connection.is_broken) duplicate->to_server.has_ended = true;
      if (duplicate->is_broken) duplicate = nullptr;
    }
    connections_.remove_if([](const Connection& c) { return c.is_broken; });
    Await(fault);
  }
}

// Blocks until a descriptor is ready, data is due or the object is stopped.
void FaultyLink::Await(const Fault& fault) {
  std::vector<pollfd> polled = {{wake_fd_, POLLIN, 0}, {listener_, POLLIN, 0}};
  const absl::Time now = absl::Now();
  absl::Time next_due = absl::InfiniteFuture();
  for (const Connection& c : connections_) {
    const auto events = [&](bool holds_in, const Pipe& in, bool holds_out,
                            const Pipe& out) {
      const bool reads = !holds_in && !in.has_ended && in.bytes.empty();
      bool writes = !holds_out && !out.bytes.empty();
      if (writes && out.due > now) {
        next_due = std::min(next_due, out.due);
        writes = false;
      }
      return static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
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
  // A connection whose data is held may be broken. poll() would report that
  // error repeatedly.
  for (pollfd& p : polled) {
    if (p.events == 0) p.fd = -1;
  }
  int timeout_ms = -1;
  if (next_due != absl::InfiniteFuture()) {
    timeout_ms =
        static_cast<int>(absl::ToInt64Milliseconds(next_due - now)) + 1;
  }
  poll(polled.data(), polled.size(), timeout_ms);
  eventfd_t count = 0;
  eventfd_read(wake_fd_, &count);
  if (polled[1].revents != 0) Accept();
}

void FaultyLink::Accept() {
  const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  Settings settings;
  {
    absl::MutexLock lock(&mutex_);
    settings = settings_;
  }
  Connection* const connection = Connect(settings.target_port, client);
  if (connection == nullptr) return CloseWithReset(client);
  MakeQuick(client);
  if (settings.duplicates) {
    connection->duplicate = Connect(settings.target_port, -1);
  }
}

FaultyLink::Connection* FaultyLink::Connect(int target_port, int client) {
  const int server = NewSocket();
  const sockaddr_in address = Loopback(target_port);
  if (server < 0 || connect(server, reinterpret_cast<const sockaddr*>(&address),
                            sizeof(address)) != 0) {
    if (server >= 0) close(server);
    return nullptr;
  }
  MakeQuick(server);
  Connection& connection = connections_.emplace_back();
  connection.client = client;
  connection.server = server;
  return &connection;
}

void FaultyLink::ReplayRecordings(const Settings& settings) {
  std::vector<std::string> recordings;
  for (const Connection& connection : connections_) {
    if (connection.client >= 0) recordings.push_back(connection.recording);
  }
  for (std::string& recording : recordings) {
    Connection* const replay = Connect(settings.target_port, -1);
    if (replay != nullptr) replay->to_server.bytes = std::move(recording);
  }
}

void FaultyLink::Advance(const Fault& fault, const Settings& settings,
                         Connection* connection) {
  if (fault.resets) return Break(connection);
  if (!fault.holds_to_server) {
    Receive(settings, connection);
    if (!fault.caller.empty() && connection->callers.contains(fault.caller)) {
      return Break(connection);
    }
    Write(connection->server, &connection->to_server, connection);
    if (connection->is_cut) return Break(connection);
  }
  if (!fault.holds_to_client && !connection->is_broken) {
    Read(settings, connection->server, &connection->to_client, connection);
    if (connection->client < 0) {
      connection->to_client.bytes.clear();
    } else {
      Write(connection->client, &connection->to_client, connection);
    }
    if (connection->is_cut) return Break(connection);
  }
  const bool has_ended = connection->client < 0
                             ? connection->to_client.has_ended
                             : connection->to_client.was_shut;
  if (connection->to_server.was_shut && has_ended) Break(connection);
}

void FaultyLink::Receive(const Settings& settings, Connection* connection) {
  Pipe& pipe = connection->to_server;
  if (connection->client < 0 || !pipe.bytes.empty()) return;
  Read(settings, connection->client, &pipe, connection);
  absl::StrReplaceAll(settings.replacements, &pipe.bytes);
  NoteCallers(connection);
  connection->recording.append(
      pipe.bytes, 0, kRecordingBytesMax - connection->recording.size());
  if (connection->duplicate == nullptr) return;
  Pipe& copy = connection->duplicate->to_server;
  copy.bytes += pipe.bytes;
  copy.has_ended = pipe.has_ended || connection->is_broken;
}

void FaultyLink::NoteCallers(Connection* connection) {
  // The name of a task may be split between two reads.
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

std::optional<int64_t> FaultyLink::TakeCut(const Connection& connection,
                                           int64_t count) {
  absl::MutexLock lock(&mutex_);
  std::vector<int64_t>& cuts = settings_.cuts;
  if (cuts.empty() || connection.carried_bytes + count < cuts.back()) {
    return std::nullopt;
  }
  const int64_t kept =
      std::max<int64_t>(0, cuts.back() - connection.carried_bytes);
  cuts.pop_back();
  return kept;
}

void FaultyLink::Read(const Settings& settings, int fd, Pipe* pipe,
                      Connection* connection) {
  if (connection->is_broken || pipe->has_ended || !pipe->bytes.empty()) return;
  pipe->bytes.resize(kPipeBytesMax);
  const ssize_t count = recv(fd, pipe->bytes.data(), pipe->bytes.size(), 0);
  const int error = errno;
  pipe->bytes.resize(count > 0 ? static_cast<size_t>(count) : 0);
  if (count == 0) pipe->has_ended = true;
  if (count < 0 && error != EAGAIN && error != EINTR) Break(connection);
  if (count <= 0) return;
  if (const std::optional<int64_t> kept = TakeCut(*connection, count)) {
    pipe->bytes.resize(static_cast<size_t>(*kept));
    connection->is_cut = true;
  }
  connection->carried_bytes += count;
  pipe->due =
      settings.delay > absl::ZeroDuration()
          ? absl::Now() +
                settings.delay * std::uniform_real_distribution<>(1, 2)(random_)
          : absl::InfinitePast();
}

void FaultyLink::Write(int fd, Pipe* pipe, Connection* connection) {
  if (connection->is_broken || pipe->due > absl::Now()) return;
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
  if (connection->client >= 0) CloseWithReset(connection->client);
  CloseWithReset(connection->server);
}

}  // namespace muster
