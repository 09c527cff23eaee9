#ifndef TESTS_CLUSTER_FAULTY_LINK_H_
#define TESTS_CLUSTER_FAULTY_LINK_H_

#include <cstdint>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace muster {

// A TCP proxy on loopback in front of a local server that injects network
// faults.
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

 private:
  struct Fault {
    bool resets = false;
    std::string caller;  // Empty: none.
    bool holds_to_server = false;
    bool holds_to_client = false;
  };
  // One direction of a connection.
  struct Pipe {
    std::string bytes;  // Read and not yet written.
    bool has_ended = false;
    bool was_shut = false;
  };
  struct Connection {
    int client = -1;
    int server = -1;
    Pipe to_server;
    Pipe to_client;
    std::string sent_last;          // The last bytes that the client sent.
    std::set<std::string> callers;  // The tasks that have sent something.
    bool is_broken = false;
  };

  FaultyLink(int listener, int wake_fd, int port, int target_port);

  void Set(Fault fault) ABSL_LOCKS_EXCLUDED(mutex_);
  void RunLoop() ABSL_LOCKS_EXCLUDED(mutex_);
  void Accept();
  // Moves data where possible.
  void Advance(const Fault& fault, Connection* connection);
  static void NoteCallers(Connection* connection);
  void Read(int fd, Pipe* pipe, Connection* connection);
  void Write(int fd, Pipe* pipe, Connection* connection);
  static void Break(Connection* connection);

  const int listener_;
  const int wake_fd_;
  const int port_;
  const int target_port_;

  absl::Mutex mutex_;
  Fault fault_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::list<Connection> connections_;  // Accessed by thread_ only.
  std::thread thread_;
};

}  // namespace muster

#endif  // TESTS_CLUSTER_FAULTY_LINK_H_
