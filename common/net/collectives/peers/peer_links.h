#ifndef COMMON_NET_COLLECTIVES_PEERS_PEER_LINKS_H_
#define COMMON_NET_COLLECTIVES_PEERS_PEER_LINKS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/base/clock.h"
#include "common/net/cluster/task_id.h"
#include "common/net/collectives/peers/admission.h"
#include "common/net/collectives/peers/conversation.h"
#include "common/net/collectives/peers/duplicate_task_probe.h"
#include "common/net/collectives/peers/peer_health.h"
#include "common/net/rpc/backoff.h"
#include "common/net/rpc/channel.h"
#include "common/net/rpc/network.h"
#include "common/net/rpc/service.h"
#include "proto/peer_group.pb.h"

namespace muster {

// The conversations of one task with all others of its group. Dials everyone
// and lets everyone in, asks for signs of life, and says who is there, who is
// missing and why, and, once it watches, who is lost.
//
// Two streams join two tasks, one opened by each. A task speaks on its own and
// listens on the other's.
//
// Thread-safe.
class PeerLinks : private Conversation::Host {
 public:
  struct Options {
    Admission::Options self;
    PeerHealth::Options health;
    BackoffOptions dial = {.initial = absl::Milliseconds(20),
                           .maximum = absl::Milliseconds(400)};
    // A peer that has just been started anew may meet those who take its
    // predecessor for alive; after so long, two processes have one name.
    absl::Duration occupied_timeout = absl::Seconds(6);
  };

  // Called on threads of the transport and of this object, without a lock, and
  // must not wait.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void OnPresent(int rank) = 0;
    // While watching, only of a peer that may go.
    virtual void OnMissing(int rank, absl::string_view reason) = 0;
    // While watching, once for a rank. The status carries a TaskFailure.
    virtual void OnLost(int rank, const absl::Status& why) = 0;
    // There can be no group with this task. Before watching only.
    virtual void OnRefused(const absl::Status& why) = 0;
    virtual void OnMessage(int rank, const proto::PeerMessage& message) = 0;
    // Every heartbeat interval.
    virtual void OnTick() = 0;
  };

  // `listener`, `network` and `clock` are borrowed. Nothing happens before
  // Start().
  PeerLinks(const Options& options, Listener* listener, Network* network,
            Clock* clock);
  ~PeerLinks()
      override;  // Stops. The server that was given AddTo() is gone by then.

  PeerLinks(const PeerLinks&) = delete;
  PeerLinks& operator=(const PeerLinks&) = delete;

  // Adds the methods by which peers reach this task.
  void AddTo(Service* service);

  // Begins to dial.
  void Start();
  // Ends all conversations. OnMessage() and the like are not called any more.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  int rank() const { return rank_; }
  int task_count() const { return static_cast<int>(tasks_.size()); }
  TaskId task(int rank) const { return tasks_[rank]; }
  // "worker 1 (localhost:20001, incarnation 6f1c...)".
  std::string Describe(int rank) const ABSL_LOCKS_EXCLUDED(mutex_);

  // What the process that fills the place has said of itself; for the own rank
  // what this task says. nullopt for a peer that is missing.
  std::optional<proto::PeerHello> hello(int rank) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // From now on the processes that fill the places are those of the group: one
  // that goes is lost for good, and no other is let in.
  void Watch() ABSL_LOCKS_EXCLUDED(mutex_);
  // The peer may go from now on.
  void ExpectEnd(int rank) ABSL_LOCKS_EXCLUDED(mutex_);

  // False when the peer cannot be reached now.
  bool Send(int rank, const proto::PeerMessage& message)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // As DuplicateTaskProbe::Find(): for a task that cannot listen at its
  // address.
  absl::Status FindDuplicateTask();

 private:
  class Dialled;  // The observer of one that went out.

  struct Peer {
    explicit Peer(const PeerHealth::Options& options) : health(options) {}

    std::string address;
    std::unique_ptr<Channel> channel;  // Null for the own rank.
    PeerHealth health;
    std::optional<proto::PeerHello> hello;
    bool news_due = false;         // The listener is to be told how it is.
    bool was_present = false;      // As the listener was told last.
    bool was_interrupted = false;  // It was missing since then.
    bool is_lost = false;
    bool end_expected = false;

    uint64_t session = 0;
    bool is_open = false;  // A stream is there or on its way.
    bool is_welcomed = false;
    std::shared_ptr<Stream> outgoing;
    std::shared_ptr<Conversation> incoming;
    int failed_dial_count = 0;
    absl::Time next_dial = absl::InfinitePast();
    std::string refusal;  // Why the peer ended the stream.
    absl::Time occupied_since = absl::InfiniteFuture();
    uint64_t refused_incarnation = 0;
  };

  // What is to be done without the lock.
  struct Action {
    enum class Kind {
      kDial,
      kSend,
      kCancel,
      kPresent,
      kMissing,
      kLost,
      kRefused,
      kProbe,
      kTick,
    } kind = Kind::kTick;
    int rank = 0;
    uint64_t session = 0;
    std::shared_ptr<Stream> stream;
    proto::PeerMessage message;
    absl::Status why;
  };
  using Actions = std::vector<Action>;

  static Action& Add(Action::Kind kind, int rank, Actions* actions);
  int RankOf(TaskId task) const;
  absl::Status Dress(const Peer& peer, int rank, absl::Status status,
                     absl::string_view attempted) const;
  void Perform(const Action& action) ABSL_LOCKS_EXCLUDED(mutex_);

  // Incoming.
  int Admit(const std::shared_ptr<Conversation>& conversation,
            const proto::PeerHello& hello) override ABSL_LOCKS_EXCLUDED(mutex_);
  bool Occupy(const std::shared_ptr<Conversation>& conversation, int rank,
              const proto::PeerHello& hello, Actions* actions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnIncoming(int rank, const proto::PeerMessage& message) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void OnIncomingDone(int rank, const Conversation* conversation) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Outgoing.
  void Dial(int rank, uint64_t session) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnAnswer(int rank, uint64_t session, const proto::PeerMessage& message)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void OnWelcome(int rank, const proto::PeerHello& hello, Actions* actions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnRefusal(int rank, const proto::PeerRefusal& refusal, Actions* actions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnDialledDone(int rank, uint64_t session, const absl::Status& status)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Redial(int rank, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Probe() ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Status LossOf(int rank, absl::string_view reason) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // After anything that may have changed who is there.
  void Settle(int rank, Actions* actions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PlanNews(int rank, Actions* actions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunLoop() ABSL_LOCKS_EXCLUDED(mutex_);
  void Plan(absl::Time now, bool is_tick, Actions* actions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Time NextWakeUp() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool MayWake() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return wake_ || stopping_;
  }
  bool NoObserversLeft() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return observer_count_ == 0;
  }

  const Options options_;
  const Admission admission_;
  const std::vector<TaskId> tasks_;
  const int rank_;
  const uint64_t incarnation_;
  Listener* const listener_;
  Clock* const clock_;
  std::unique_ptr<DuplicateTaskProbe> duplicate_probe_;  // Constant.

  mutable absl::Mutex mutex_;
  // The vector and the channels are constant; the rest is guarded.
  std::vector<Peer> peers_;
  bool watching_ ABSL_GUARDED_BY(mutex_) = false;
  bool wake_ ABSL_GUARDED_BY(mutex_) = true;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool probe_due_ ABSL_GUARDED_BY(mutex_) = true;
  int observer_count_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time next_tick_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;  // Started and joined by the owner.
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_PEERS_PEER_LINKS_H_
