#ifndef COMMON_NET_COLLECTIVES_PEERS_PEER_LINKS_H_
#define COMMON_NET_COLLECTIVES_PEERS_PEER_LINKS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/base/backoff.h"
#include "common/core/system/clock.h"
#include "common/net/cluster/task_id.h"
#include "common/net/collectives/peers/admission.h"
#include "common/net/collectives/peers/conversation.h"
#include "common/net/collectives/peers/duplicate_task_probe.h"
#include "common/net/collectives/peers/peer_health.h"
#include "common/net/collectives/peers/peer_listener.h"
#include "common/net/rpc/message.h"
#include "common/net/rpc/network.h"
#include "common/net/rpc/reconnecting_stream.h"
#include "common/net/rpc/service.h"
#include "common/net/rpc/tick_loop.h"
#include "proto/peer_group.pb.h"

namespace muster {

// The connections of one task to all others of its group. Connects to every
// peer and accepts every peer's stream, sends heartbeats, and reports which
// peers are present, which are missing and why, and, after Watch(), which are
// lost.
//
// Two streams connect two tasks; each task opens one. A task sends on its own
// stream, which is a ReconnectingStream, and receives on the other's.
// PeerHealth measures silence, because messages of a peer arrive on both
// streams.
//
// Thread-safe.
class PeerLinks : private Conversation::Host,
                  private ReconnectingStream::Listener {
 public:
  struct Options {
    Admission::Options self;
    PeerHealth::Options health;
    BackoffOptions dial = {.initial = absl::Milliseconds(20),
                           .maximum = absl::Milliseconds(400)};
    // A process that was just restarted may be refused by peers that still
    // consider the previous process alive. A refusal after this time means that
    // two processes run as the same task.
    absl::Duration occupied_timeout = absl::Seconds(6);
    // ChannelOptions::keepalive. Longer than PeerHealth takes to detect
    // silence, so that connections survive an outage that the group survives.
    absl::Duration keepalive = absl::Seconds(10);
    // As PeerGroup::Options.
    bool ends_when_closed = false;
  };

  // `listener`, `network` and `clock` are borrowed. Connects only after
  // Start().
  PeerLinks(const Options& options, PeerListener* listener, Network* network,
            Clock* clock);
  // Calls Stop(). The server of the service that was passed to AddTo() must
  // have been destroyed.
  ~PeerLinks() override;

  PeerLinks(const PeerLinks&) = delete;
  PeerLinks& operator=(const PeerLinks&) = delete;

  // Adds the methods by which peers reach this task.
  void AddTo(Service* service);

  // Begins to connect.
  void Start();
  // Ends all streams. The listener is not called afterwards.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  int rank() const { return rank_; }
  int task_count() const { return static_cast<int>(tasks_.size()); }
  TaskId task(int rank) const { return tasks_[rank]; }
  // "worker 1 (localhost:20001, incarnation 6f1c...)".
  std::string Describe(int rank) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the hello of the peer's process, or this task's own hello for its
  // own rank. nullopt if the peer is missing.
  std::optional<proto::PeerHello> hello(int rank) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns for how long nothing has arrived from the peer, if that is more
  // than two heartbeats.
  std::optional<absl::Duration> SilenceOf(int rank) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // From now on, the processes that are present form the group. A process that
  // ends is lost permanently, and no other process is accepted in its place.
  void Watch() ABSL_LOCKS_EXCLUDED(mutex_);
  // From now on, the peer may end without being lost.
  void ExpectEnd(int rank) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns false if the peer is not connected.
  bool Send(int rank, const proto::PeerMessage& message)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // As DuplicateTaskProbe::Find(), for a task that cannot listen on its
  // address.
  absl::Status FindDuplicateTask();

 private:
  struct Peer {
    explicit Peer(const PeerHealth::Options& options) : health(options) {}

    PeerHealth health;
    std::optional<proto::PeerHello> hello;
    bool report_due = false;       // The listener must be told the peer's
                                   // state.
    bool was_present = false;      // As last reported to the listener.
    bool was_interrupted = false;  // The peer was missing since then.
    bool is_lost = false;
    bool end_expected = false;

    // Session of the outgoing stream; 0 if the peer has not answered the hello.
    uint64_t welcomed_session = 0;
    std::shared_ptr<Conversation> incoming;
    absl::Time occupied_since = absl::InfiniteFuture();
    uint64_t refused_incarnation = 0;
  };

  // Calls to be made without the lock, in order.
  using Actions = std::vector<std::function<void()>>;
  static void Perform(const Actions& actions);

  int RankOf(TaskId task) const;
  std::string DescribeSelf() const {
    return DescribeProcess(options_.self.task, options_.self.address,
                           incarnation_);
  }
  // Returns `status` with a TaskFailure that names the peer.
  absl::Status WithPeer(int rank, const absl::Status& status,
                        absl::string_view attempted) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  // Events of incoming streams.
  int Admit(const std::shared_ptr<Conversation>& conversation,
            const proto::PeerHello& hello) override ABSL_LOCKS_EXCLUDED(mutex_);
  bool AdmitPeer(const std::shared_ptr<Conversation>& conversation, int rank,
                 const proto::PeerHello& hello, Actions* actions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnIncoming(int rank, const proto::PeerMessage& message) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void OnIncomingDone(int rank, const Conversation* conversation) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Events of outgoing streams.
  Message OnDial(int rank, uint64_t session) override;
  void OnMessage(int rank, uint64_t session, ReceivedMessage received) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void OnEnd(int rank, uint64_t session, const absl::Status& why) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void OnWelcome(int rank, uint64_t session, const proto::PeerHello& hello,
                 Actions* actions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnRefusal(int rank, uint64_t session, const proto::PeerRefusal& refusal,
                 Actions* actions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Probe() ABSL_LOCKS_EXCLUDED(mutex_);

  // Tells the listener, before a group is formed, that a task is in a later
  // view than this one.
  void NoteView(uint64_t view, const absl::Status& why, Actions* actions)
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Called after the peer's hello was accepted. Tells the listener if one of
  // the two tasks cannot train.
  void NoteFailure(int rank, const proto::PeerHello& hello, Actions* actions)
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status LossOf(int rank, absl::string_view reason) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Called after any event that may have changed whether the peer is present.
  void Settle(int rank, Actions* actions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PlanReports(int rank, Actions* actions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Time TakeTurn(const TickLoop::Turn& turn) ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsProbeDone() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !is_probing_;
  }

  const Options options_;
  const Admission admission_;
  const std::vector<TaskId> tasks_;
  const int rank_;
  const uint64_t incarnation_;
  PeerListener* const listener_;
  Clock* const clock_;
  TickLoop loop_;
  // The rest up to the lock is constant after construction.
  std::vector<std::string> addresses_;  // By rank; the addresses of the
                                        // cluster.
  // By rank; null for this task.
  std::vector<std::unique_ptr<ReconnectingStream>> streams_;
  std::unique_ptr<DuplicateTaskProbe> duplicate_probe_;

  mutable absl::Mutex mutex_;
  std::vector<Peer> peers_ ABSL_GUARDED_BY(mutex_);  // By rank.
  bool watching_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool probe_due_ ABSL_GUARDED_BY(mutex_) = true;
  bool is_probing_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_PEERS_PEER_LINKS_H_
