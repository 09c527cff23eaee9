#include "tests/simulation/network/simulated_transport.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/core/base/check.h"

namespace muster::sim {
namespace {

// A few, so that handlers of different calls run concurrently.
constexpr size_t kLaneCount = 2;
constexpr absl::Duration kKeepaliveCheck = absl::Milliseconds(50);
// Timeout of one attempt to connect, as in grpc_channel.cc.
constexpr absl::Duration kConnectTimeout = absl::Seconds(1);

size_t LaneOf(uint64_t call) { return call / 2 % kLaneCount; }

std::string MachineOfAddress(const std::string& address) {
  return address.substr(0, address.rfind(':'));
}

}  // namespace

// All members are guarded by SimulatedTransport::mutex_.
class Connection {
 public:
  struct InFlight {
    int64_t due = 0;
    Packet packet;
  };
  struct End {
    HostId host = 0;
    std::string machine;
    bool is_open = true;
    // What it has sent, in order.
    std::deque<InFlight> in_flight;
    // Nothing more arrives: the connection was broken.
    bool is_broken = false;
    // Since when the other end cannot answer; kNever if it can.
    int64_t unanswered_since = kNever;
    std::map<uint64_t, std::shared_ptr<PacketReceiver>> receivers;
  };

  End& end(Side side) { return ends[static_cast<int>(side)]; }

  End ends[2];
  absl::Duration keepalive;
  std::shared_ptr<Acceptor> acceptor;
};

SimulatedTransport::SimulatedTransport(Scheduler* scheduler,
                                       const TransportOptions& options)
    : scheduler_(scheduler), options_(options) {
  scheduler_->StartThread(kSimulationHost, "network", [this] { RunEvents(); });
}

void SimulatedTransport::AddHost(HostId host, const std::string& machine) {
  Host added = {.machine = machine};
  for (size_t i = 0; i < kLaneCount; ++i) {
    added.lanes.push_back(std::make_unique<Lane>());
    Lane* const lane = added.lanes.back().get();
    scheduler_->StartThread(host, "network", [lane] { RunLane(lane); });
  }
  absl::MutexLock lock(&mutex_);
  hosts_[host] = std::move(added);
}

void SimulatedTransport::RunLane(Lane* lane) {
  const auto has_task = [lane] {
    lane->mutex.AssertHeld();
    return !lane->tasks.empty();
  };
  while (true) {
    std::function<void()> task;
    {
      absl::MutexLock lock(&lane->mutex);
      lane->mutex.Await(absl::Condition(&has_task));
      task = std::move(lane->tasks.front());
      lane->tasks.pop_front();
    }
    task();
  }
}

void SimulatedTransport::RunEvents() {
  absl::MutexLock lock(&mutex_);
  int64_t next_check = 0;
  while (true) {
    if (Now() >= next_check) {
      CheckKeepalives();
      next_check = Now() + absl::ToInt64Nanoseconds(kKeepaliveCheck);
    }
    while (!events_.empty() && events_.begin()->first <= Now()) {
      const std::function<void()> event = std::move(events_.begin()->second);
      events_.erase(events_.begin());
      event();
    }
    const int64_t wake = events_.empty()
                             ? next_check
                             : std::min(next_check, events_.begin()->first);
    const auto has_earlier = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return !events_.empty() && events_.begin()->first < wake;
    };
    mutex_.AwaitWithTimeout(
        absl::Condition(&has_earlier),
        absl::Nanoseconds(std::max<int64_t>(wake - Now(), 1)));
  }
}

void SimulatedTransport::AddEvent(int64_t time, std::function<void()> event) {
  events_.emplace(time, std::move(event));
}

void SimulatedTransport::AddTask(HostId host, uint64_t call,
                                 std::function<void()> task) {
  const Host& target = hosts_.at(host);
  if (!target.is_alive) return;
  Lane* const lane = target.lanes[LaneOf(call)].get();
  absl::MutexLock lock(&lane->mutex);
  lane->tasks.push_back(std::move(task));
}

bool SimulatedTransport::Chance(int one_in) {
  return one_in > 0 && scheduler_->Below(static_cast<uint64_t>(one_in)) == 0;
}

absl::Duration SimulatedTransport::DrawDelay() {
  const absl::Duration range =
      (Chance(options_.delay_long_one_in) ? options_.delay_long
                                          : options_.delay_max) -
      options_.delay_min;
  return options_.delay_min +
         absl::Nanoseconds(scheduler_->Below(
             static_cast<uint64_t>(absl::ToInt64Nanoseconds(range)) + 1));
}

void SimulatedTransport::Post(HostId host, uint64_t call, absl::Duration delay,
                              std::function<void()> task) {
  absl::MutexLock lock(&mutex_);
  AddEvent(Now() + absl::ToInt64Nanoseconds(delay),
           [this, host, call, task = std::move(task)] {
             mutex_.AssertHeld();
             AddTask(host, call, task);
           });
}

void SimulatedTransport::KillHost(HostId host) {
  absl::MutexLock lock(&mutex_);
  hosts_.at(host).is_alive = false;
  std::erase_if(listeners_, [host](const auto& entry) {
    return entry.second.host == host;
  });
  for (const auto& connection : connections_) {
    for (const Side side : {Side::kClient, Side::kServer}) {
      if (connection->end(side).host != host ||
          !connection->end(side).is_open) {
        continue;
      }
      connection->end(side).is_open = false;
      ResetOther(connection, side, /*loses_packets=*/true, "socket closed");
    }
  }
}

void SimulatedTransport::SetPath(const std::string& from, const std::string& to,
                                 bool is_open) {
  absl::MutexLock lock(&mutex_);
  if (!is_open) {
    closed_paths_.insert({from, to});
    return;
  }
  closed_paths_.erase({from, to});
  for (const auto& connection : connections_) {
    for (const Side side : {Side::kClient, Side::kServer}) {
      if (connection->end(side).machine == from &&
          connection->end(Other(side)).machine == to) {
        Advance(connection, side);
      }
    }
  }
}

void SimulatedTransport::OpenAllPaths() {
  std::set<std::pair<std::string, std::string>> closed;
  {
    absl::MutexLock lock(&mutex_);
    closed = closed_paths_;
  }
  for (const auto& [from, to] : closed) SetPath(from, to, true);
}

int SimulatedTransport::BreakConnections(const std::string& one,
                                         const std::string& other) {
  absl::MutexLock lock(&mutex_);
  int count = 0;
  for (const auto& connection : connections_) {
    const std::string& client = connection->end(Side::kClient).machine;
    const std::string& server = connection->end(Side::kServer).machine;
    if (!(client == one && server == other) &&
        !(client == other && server == one)) {
      continue;
    }
    for (const Side side : {Side::kClient, Side::kServer}) {
      ResetOther(connection, side, /*loses_packets=*/true,
                 "connection reset by peer");
    }
    ++count;
  }
  return count;
}

bool SimulatedTransport::Listen(const std::string& address,
                                std::shared_ptr<Acceptor> acceptor) {
  absl::MutexLock lock(&mutex_);
  return listeners_
      .try_emplace(address, Listener{.host = scheduler_->current_host(),
                                     .acceptor = std::move(acceptor)})
      .second;
}

void SimulatedTransport::StopListening(const std::string& address,
                                       const Acceptor* acceptor) {
  absl::MutexLock lock(&mutex_);
  const auto found = listeners_.find(address);
  if (found != listeners_.end() && found->second.acceptor.get() == acceptor) {
    listeners_.erase(found);
  }
}

void SimulatedTransport::EndConnections(const Acceptor* acceptor) {
  absl::MutexLock lock(&mutex_);
  for (const auto& connection : connections_) {
    if (connection->acceptor.get() != acceptor ||
        !connection->end(Side::kServer).is_open) {
      continue;
    }
    ResetOther(connection, Side::kServer, /*loses_packets=*/false,
               "socket closed");
    End(connection, Side::kServer, "the server has shut down");
  }
}

void SimulatedTransport::Dial(HostId host, const std::string& address,
                              absl::Duration keepalive, DialDone done) {
  absl::MutexLock lock(&mutex_);
  const int64_t give_up_time =
      Now() + absl::ToInt64Nanoseconds(kConnectTimeout);
  AddEvent(
      Now() + absl::ToInt64Nanoseconds(DrawDelay() + DrawDelay()),
      [this, host, address, keepalive, give_up_time, done = std::move(done)] {
        mutex_.AssertHeld();
        TryToConnect(host, address, keepalive, give_up_time, done);
      });
}

void SimulatedTransport::TryToConnect(HostId host, const std::string& address,
                                      absl::Duration keepalive,
                                      int64_t give_up_time,
                                      const DialDone& done) {
  const std::string& client = hosts_.at(host).machine;
  const std::string server = MachineOfAddress(address);
  const auto listener = listeners_.find(address);
  const bool reaches = PathIsOpen(client, server) && PathIsOpen(server, client);
  if (reaches && listener == listeners_.end()) {
    AddTask(host, 0, [done] { done(nullptr, "connection refused"); });
    return;
  }
  // The kernel of a stopped process accepts connections, but the process does
  // not answer.
  if (reaches && scheduler_->IsRunning(listener->second.host)) {
    auto connection = std::make_shared<Connection>();
    connection->end(Side::kClient).host = host;
    connection->end(Side::kClient).machine = client;
    connection->end(Side::kServer).host = listener->second.host;
    connection->end(Side::kServer).machine = server;
    connection->keepalive = keepalive;
    connection->acceptor = listener->second.acceptor;
    connections_.push_back(connection);
    AddTask(host, 0, [done, connection] { done(connection, ""); });
    return;
  }
  if (Now() >= give_up_time) {
    AddTask(host, 0, [done] { done(nullptr, "connection timed out"); });
    return;
  }
  AddEvent(Now() + absl::ToInt64Nanoseconds(kKeepaliveCheck),
           [this, host, address, keepalive, give_up_time, done] {
             mutex_.AssertHeld();
             TryToConnect(host, address, keepalive, give_up_time, done);
           });
}

uint64_t SimulatedTransport::NextCall() {
  absl::MutexLock lock(&mutex_);
  return last_call_ += 2;
}

bool SimulatedTransport::Add(const std::shared_ptr<Connection>& connection,
                             Side side, uint64_t call,
                             std::shared_ptr<PacketReceiver> receiver) {
  absl::MutexLock lock(&mutex_);
  Connection::End& end = connection->end(side);
  if (!end.is_open) return false;
  end.receivers[call] = std::move(receiver);
  return true;
}

void SimulatedTransport::Remove(const std::shared_ptr<Connection>& connection,
                                Side side, uint64_t call) {
  std::shared_ptr<PacketReceiver> removed;  // Destroyed without the lock.
  absl::MutexLock lock(&mutex_);
  Connection::End& end = connection->end(side);
  const auto found = end.receivers.find(call);
  if (found == end.receivers.end()) return;
  removed = std::move(found->second);
  end.receivers.erase(found);
}

void SimulatedTransport::Send(const std::shared_ptr<Connection>& connection,
                              Side side, Packet packet) {
  absl::MutexLock lock(&mutex_);
  if (!connection->end(side).is_open) return;
  SendLocked(connection, side, std::move(packet));
}

void SimulatedTransport::SendLocked(
    const std::shared_ptr<Connection>& connection, Side side, Packet packet) {
  Connection::End& end = connection->end(side);
  // A killed process sends nothing, although its threads may finish a critical
  // section.
  if (end.is_broken || !hosts_.at(end.host).is_alive) return;
  int64_t due = Now() + absl::ToInt64Nanoseconds(DrawDelay());
  if (!end.in_flight.empty()) due = std::max(due, end.in_flight.back().due);
  end.in_flight.push_back({.due = due, .packet = std::move(packet)});
  AddEvent(due, [this, connection, side] {
    mutex_.AssertHeld();
    Advance(connection, side);
  });
}

size_t SimulatedTransport::InFlightCount(
    const std::shared_ptr<Connection>& connection, Side side) {
  absl::MutexLock lock(&mutex_);
  return connection->end(side).in_flight.size();
}

bool SimulatedTransport::IsOpen(const std::shared_ptr<Connection>& connection,
                                Side side) {
  absl::MutexLock lock(&mutex_);
  return connection->end(side).is_open;
}

std::string SimulatedTransport::MachineOf(
    const std::shared_ptr<Connection>& connection, Side side) {
  absl::MutexLock lock(&mutex_);
  return connection->end(side).machine;
}

void SimulatedTransport::Advance(const std::shared_ptr<Connection>& connection,
                                 Side side) {
  Connection::End& from = connection->end(side);
  Connection::End& to = connection->end(Other(side));
  while (!from.in_flight.empty() && from.in_flight.front().due <= Now() &&
         PathIsOpen(from.machine, to.machine)) {
    Packet packet = std::move(from.in_flight.front().packet);
    from.in_flight.pop_front();
    if (to.is_open) Deliver(connection, Other(side), std::move(packet));
  }
}

void SimulatedTransport::Deliver(const std::shared_ptr<Connection>& connection,
                                 Side to, Packet packet) {
  if (packet.kind == Packet::Kind::kReset) {
    End(connection, to, packet.status);
    return;
  }
  const uint64_t call = packet.call;
  AddTask(connection->end(to).host, call,
          [this, connection, to, packet = std::move(packet)]() mutable {
            Receive(connection, to, std::move(packet));
          });
}

void SimulatedTransport::Receive(const std::shared_ptr<Connection>& connection,
                                 Side side, Packet packet) {
  std::shared_ptr<PacketReceiver> receiver;
  {
    absl::MutexLock lock(&mutex_);
    const auto& receivers = connection->end(side).receivers;
    const auto found = receivers.find(packet.call);
    if (found != receivers.end()) receiver = found->second;
  }
  if (packet.kind != Packet::Kind::kOpen) {
    if (receiver != nullptr) receiver->OnPacket(std::move(packet));
    return;
  }
  receiver = connection->acceptor->OnOpen(connection, packet);
  if (receiver != nullptr && !Add(connection, side, packet.call, receiver)) {
    receiver->OnBroken("socket closed");
  }
}

void SimulatedTransport::End(const std::shared_ptr<Connection>& connection,
                             Side side, const std::string& reason) {
  Connection::End& end = connection->end(side);
  if (!end.is_open) return;
  end.is_open = false;
  for (size_t lane = 0; lane < kLaneCount; ++lane) {
    AddTask(end.host, lane * 2, [this, connection, side, lane, reason] {
      EndReceivers(connection, side, lane, reason);
    });
  }
}

void SimulatedTransport::EndReceivers(
    const std::shared_ptr<Connection>& connection, Side side, size_t lane,
    const std::string& reason) {
  std::vector<std::shared_ptr<PacketReceiver>> ended;
  {
    absl::MutexLock lock(&mutex_);
    auto& receivers = connection->end(side).receivers;
    for (auto it = receivers.begin(); it != receivers.end();) {
      if (LaneOf(it->first) != lane) {
        ++it;
        continue;
      }
      ended.push_back(std::move(it->second));
      it = receivers.erase(it);
    }
  }
  for (const auto& receiver : ended) receiver->OnBroken(reason);
}

void SimulatedTransport::ResetOther(
    const std::shared_ptr<Connection>& connection, Side side,
    bool loses_packets, const std::string& reason) {
  Connection::End& end = connection->end(side);
  if (end.is_broken) return;
  if (loses_packets && !end.in_flight.empty()) {
    end.in_flight.resize(scheduler_->Below(end.in_flight.size() + 1));
  }
  int64_t due = Now() + absl::ToInt64Nanoseconds(DrawDelay());
  if (!end.in_flight.empty()) due = std::max(due, end.in_flight.back().due);
  end.in_flight.push_back(
      {.due = due, .packet = {.kind = Packet::Kind::kReset, .status = reason}});
  end.is_broken = true;
  AddEvent(due, [this, connection, side] {
    mutex_.AssertHeld();
    Advance(connection, side);
  });
}

void SimulatedTransport::CheckKeepalives() {
  for (const auto& connection : connections_) {
    for (const Side side : {Side::kClient, Side::kServer}) {
      Connection::End& end = connection->end(side);
      const Connection::End& other = connection->end(Other(side));
      if (!end.is_open || !scheduler_->IsRunning(end.host)) continue;
      const bool answers = PathIsOpen(end.machine, other.machine) &&
                           PathIsOpen(other.machine, end.machine) &&
                           scheduler_->IsRunning(other.host);
      if (answers) {
        end.unanswered_since = kNever;
      } else if (end.unanswered_since == kNever) {
        end.unanswered_since = Now();
      } else if (absl::Nanoseconds(Now() - end.unanswered_since) >
                 2 * connection->keepalive) {
        ResetOther(connection, side, /*loses_packets=*/false, "socket closed");
        End(connection, side, "keepalive watchdog timeout");
      }
    }
  }
  std::erase_if(connections_, [](const auto& connection) {
    return !connection->end(Side::kClient).is_open &&
           !connection->end(Side::kServer).is_open;
  });
}

}  // namespace muster::sim
