#ifndef TESTS_SIMULATION_NETWORK_SIMULATED_TRANSPORT_H_
#define TESTS_SIMULATION_NETWORK_SIMULATED_TRANSPORT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/net/rpc/seen_calls.h"
#include "tests/simulation/scheduler/scheduler.h"

// Simulated connections, as TCP with HTTP/2 would give them: bytes arrive
// complete and in order, with delays that the seed determines, or the
// connection ends.
namespace muster::sim {

// One event of a call, on its way from one end of a connection to the other.
struct Packet {
  enum class Kind { kOpen, kMessage, kHalfClose, kCancel, kFinish, kReset };
  Kind kind = Kind::kMessage;
  // Identifies the call. Events of calls with equal `call / 2` are delivered
  // one at a time.
  uint64_t call = 0;
  // Of kOpen: the metadata of the call.
  std::string method;
  std::string identity;  // An encoded proto::RequestIdentity.
  CallId id;
  // An encoded message. Of kFinish: the response; empty if there is none.
  std::string bytes;
  // Of kFinish: an encoded proto::StatusDetail, and if the call was refused
  // because it had arrived before. Of kReset: the reason.
  std::string status;
  bool was_repeated = false;
};

// One end of a call. Its functions are called on the threads of its host, one
// at a time.
class PacketReceiver {
 public:
  virtual ~PacketReceiver() = default;
  virtual void OnPacket(Packet packet) = 0;
  // The connection has ended. The last call.
  virtual void OnBroken(const std::string& reason) = 0;
};

class Connection;

// Accepts the calls that arrive at an address.
class Acceptor {
 public:
  virtual ~Acceptor() = default;
  // Returns the server's end of the call, or null if it was refused.
  virtual std::shared_ptr<PacketReceiver> OnOpen(
      const std::shared_ptr<Connection>& connection, const Packet& open) = 0;
};

// The two ends of a connection.
enum class Side { kClient = 0, kServer = 1 };
inline Side Other(Side side) {
  return side == Side::kClient ? Side::kServer : Side::kClient;
}

struct TransportOptions {
  // Delay of a packet: uniform between these, and sometimes up to delay_long.
  absl::Duration delay_min = absl::Microseconds(50);
  absl::Duration delay_max = absl::Microseconds(500);
  absl::Duration delay_long = absl::Milliseconds(200);
  int delay_long_one_in = 200;
};

// All machines, connections and packets. Machines have the names under which
// they are addressed: that of "10.0.0.1:2222" is "10.0.0.1".
//
// Thread-safe. Called on simulated threads.
class SimulatedTransport {
 public:
  SimulatedTransport(Scheduler* scheduler, const TransportOptions& options);

  // Starts the threads that deliver packets to `host`, on which a process of
  // `machine` runs.
  void AddHost(HostId host, const std::string& machine);
  // Ends the connections of a host that was killed. The other ends learn of it
  // if packets of the host still reach them.
  void KillHost(HostId host) ABSL_LOCKS_EXCLUDED(mutex_);

  // Opens or closes the path from one machine to another. Packets on a closed
  // path wait. A connection with a closed path ends after twice its keepalive.
  void SetPath(const std::string& from, const std::string& to, bool is_open)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void OpenAllPaths() ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the connections between two machines. Some of the packets that are on
  // their way are lost. Returns the number of connections.
  int BreakConnections(const std::string& one, const std::string& other)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Accepts connections on `address`, for the host of the calling thread.
  // Returns false if the address is taken.
  bool Listen(const std::string& address, std::shared_ptr<Acceptor> acceptor)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Accepts no further connections, and ends the connections of `acceptor`.
  void StopListening(const std::string& address, const Acceptor* acceptor)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void EndConnections(const Acceptor* acceptor) ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls `done` on a thread of `host` with a new connection, or with null and
  // the reason.
  using DialDone = std::function<void(std::shared_ptr<Connection>,
                                      const std::string& reason)>;
  void Dial(HostId host, const std::string& address, absl::Duration keepalive,
            DialDone done) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the number of a new call, which is even.
  uint64_t NextCall() ABSL_LOCKS_EXCLUDED(mutex_);
  // Delivers the packets of `call` that arrive at `side` to `receiver`, until
  // Remove(). Returns false if that end of the connection has ended.
  bool Add(const std::shared_ptr<Connection>& connection, Side side,
           uint64_t call, std::shared_ptr<PacketReceiver> receiver)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(const std::shared_ptr<Connection>& connection, Side side,
              uint64_t call) ABSL_LOCKS_EXCLUDED(mutex_);
  // Sends a packet from `side`. If the connection has ended, it is lost.
  void Send(const std::shared_ptr<Connection>& connection, Side side,
            Packet packet) ABSL_LOCKS_EXCLUDED(mutex_);
  // The number of packets that `side` has sent and that have not arrived.
  size_t InFlightCount(const std::shared_ptr<Connection>& connection, Side side)
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsOpen(const std::shared_ptr<Connection>& connection, Side side)
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::string MachineOf(const std::shared_ptr<Connection>& connection,
                        Side side) ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls `task` on the thread of `host` that serves `call`, after `delay`.
  void Post(HostId host, uint64_t call, absl::Duration delay,
            std::function<void()> task) ABSL_LOCKS_EXCLUDED(mutex_);

  // Counts calls that a server refused because they had arrived before.
  void CountRepeatedCall() { ++repeated_call_count_; }
  int64_t repeated_call_count() const { return repeated_call_count_; }

  Scheduler& scheduler() { return *scheduler_; }
  // True with probability 1 / `one_in`; false if that is 0.
  bool Chance(int one_in);
  absl::Duration DrawDelay();

 private:
  // A thread of a host, and the tasks that it runs in order.
  struct Lane {
    absl::Mutex mutex;
    std::deque<std::function<void()>> tasks ABSL_GUARDED_BY(mutex);
  };
  struct Host {
    std::string machine;
    bool is_alive = true;
    std::vector<std::unique_ptr<Lane>> lanes;
  };
  struct Listener {
    HostId host;
    std::shared_ptr<Acceptor> acceptor;
  };

  static void RunLane(Lane* lane);
  // Runs events at their times.
  void RunEvents() ABSL_LOCKS_EXCLUDED(mutex_);

  int64_t Now() const { return scheduler_->now_nanoseconds(); }
  void AddEvent(int64_t time, std::function<void()> event)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddTask(HostId host, uint64_t call, std::function<void()> task)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool PathIsOpen(const std::string& from, const std::string& to) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !closed_paths_.contains({from, to});
  }
  void TryToConnect(HostId host, const std::string& address,
                    absl::Duration keepalive, int64_t give_up_time,
                    const DialDone& done) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendLocked(const std::shared_ptr<Connection>& connection, Side side,
                  Packet packet) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Delivers what `side` has sent and what is due.
  void Advance(const std::shared_ptr<Connection>& connection, Side side)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Deliver(const std::shared_ptr<Connection>& connection, Side to,
               Packet packet) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends one end of a connection.
  void End(const std::shared_ptr<Connection>& connection, Side side,
           const std::string& reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Drops some of what `side` has sent and resets the other end after the rest.
  void ResetOther(const std::shared_ptr<Connection>& connection, Side side,
                  bool loses_packets, const std::string& reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Runs a task at the receiver's end. See Deliver().
  void Receive(const std::shared_ptr<Connection>& connection, Side side,
               Packet packet) ABSL_LOCKS_EXCLUDED(mutex_);
  void EndReceivers(const std::shared_ptr<Connection>& connection, Side side,
                    size_t lane, const std::string& reason)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void CheckKeepalives() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Scheduler* const scheduler_;
  const TransportOptions options_;
  std::atomic<int64_t> repeated_call_count_ = 0;
  absl::Mutex mutex_;
  std::multimap<int64_t, std::function<void()>> events_ ABSL_GUARDED_BY(mutex_);
  std::map<HostId, Host> hosts_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Listener> listeners_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<std::string, std::string>> closed_paths_
      ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Connection>> connections_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_call_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster::sim

#endif  // TESTS_SIMULATION_NETWORK_SIMULATED_TRANSPORT_H_
