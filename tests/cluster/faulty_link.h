#ifndef TESTS_CLUSTER_FAULTY_LINK_H_
#define TESTS_CLUSTER_FAULTY_LINK_H_

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace muster {

// A TCP proxy on loopback in front of a local server that injects network
// faults. Connections must not be encrypted.
//
// Thread-safe.
class FaultyLink {
 public:
  // Forwards connections to port() to `target_port`.
  //   kResourceExhausted  no port or file descriptor is available
  static absl::StatusOr<std::unique_ptr<FaultyLink>> Create(int target_port);

  ~FaultyLink();

  FaultyLink(const FaultyLink&) = delete;
  FaultyLink& operator=(const FaultyLink&) = delete;

  int port() const { return port_; }

  // Resets all connections, and each new one, until Heal().
  void Reset() ABSL_LOCKS_EXCLUDED(mutex_);
  // Resets the connections of one task: "chief 0", "worker 0" or "worker 1".
  // Every message contains the name of its sender.
  void ResetCaller(absl::string_view task) ABSL_LOCKS_EXCLUDED(mutex_);
  // Holds all data in this direction, including that of new connections, until
  // Heal(). The data is then delivered, like after packet loss.
  enum class Direction { kBoth, kToServer, kToClient };
  void Silence(Direction direction) ABSL_LOCKS_EXCLUDED(mutex_);
  void Heal() ABSL_LOCKS_EXCLUDED(mutex_);

  // The methods below are not undone by Heal().

  // Delivers everything that clients send twice: also on a second connection to
  // the server, whose responses are dropped. Applies to new connections only.
  void Duplicate() ABSL_LOCKS_EXCLUDED(mutex_);
  // Sends again what the clients of all open connections have sent so far, up
  // to 16 MiB for each connection, on new connections. The responses to it are
  // dropped.
  void Replay() ABSL_LOCKS_EXCLUDED(mutex_);
  // Replaces a text that clients send by another one of the same length.
  // Earlier replacements remain. A text that is split between two reads is not
  // found.
  void Rewrite(absl::string_view text, absl::string_view replacement)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Delays all data by a random time between `delay` and twice `delay`. Zero
  // ends the delays.
  void Delay(absl::Duration delay) ABSL_LOCKS_EXCLUDED(mutex_);
  // Resets one connection for each of these numbers, in order: the connection
  // is reset after that number of bytes, counted in both directions together.
  void CutAfter(std::vector<int64_t> byte_counts) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the number of connections that CutAfter() has still to reset.
  int pending_cut_count() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Forwards new connections to another port.
  void Retarget(int target_port) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Fault {
    bool resets = false;
    std::string caller;  // Empty if none.
    bool holds_to_server = false;
    bool holds_to_client = false;
  };
  struct Settings {
    int target_port = 0;
    bool duplicates = false;
    bool replays = false;  // True until Replay() has run.
    std::vector<std::pair<std::string, std::string>> replacements;
    absl::Duration delay;
    std::vector<int64_t> cuts;  // From CutAfter(); the next one is last.
  };
  // One direction of a connection.
  struct Pipe {
    std::string bytes;                      // Read and not yet written.
    absl::Time due = absl::InfinitePast();  // Not written earlier.
    bool has_ended = false;
    bool was_shut = false;
  };
  struct Connection {
    int client = -1;  // -1: a repetition.
    int server = -1;
    Pipe to_server;
    Pipe to_client;
    std::string sent_last;            // The last bytes that the client sent.
    std::set<std::string> callers;    // The tasks that have sent data.
    std::string recording;            // The bytes that the client has sent.
    int64_t carried_bytes = 0;        // In both directions.
    bool is_cut = false;              // Breaks after the remaining data is
                                      // sent.
    Connection* duplicate = nullptr;  // Gets the same data.
    bool is_broken = false;
  };

  FaultyLink(int listener, int wake_fd, int port, int target_port);

  void Set(Fault fault) ABSL_LOCKS_EXCLUDED(mutex_);
  void RunLoop() ABSL_LOCKS_EXCLUDED(mutex_);
  void Await(const Fault& fault);
  // If the connection must break within the `count` bytes that it has just
  // read, removes the byte count from the list of CutAfter() and returns how
  // many of these bytes are sent.
  std::optional<int64_t> TakeCut(const Connection& connection, int64_t count)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Accept() ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds a connection to the server; null if it cannot be reached.
  Connection* Connect(int target_port, int client);
  void ReplayRecordings(const Settings& settings);
  // Reads and writes as much as possible.
  void Advance(const Fault& fault, const Settings& settings,
               Connection* connection);
  // Reads from the client.
  void Receive(const Settings& settings, Connection* connection);
  static void NoteCallers(Connection* connection);
  void Read(const Settings& settings, int fd, Pipe* pipe,
            Connection* connection);
  void Write(int fd, Pipe* pipe, Connection* connection);
  static void Break(Connection* connection);

  const int listener_;
  const int wake_fd_;
  const int port_;

  mutable absl::Mutex mutex_;
  Fault fault_ ABSL_GUARDED_BY(mutex_);
  Settings settings_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  // Accessed by thread_ only.
  std::list<Connection> connections_;
  std::mt19937 random_;
  std::thread thread_;
};

}  // namespace muster

#endif  // TESTS_CLUSTER_FAULTY_LINK_H_
