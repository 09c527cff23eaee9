#include "common/net/collectives/peers/peer_links.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/check.h"
#include "common/core/base/status_message.h"
#include "common/core/system/log.h"
#include "common/net/cluster/cluster_codec.h"
#include "common/net/collectives/peers/group_error.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/status_detail.h"
#include "proto/rpc.pb.h"

namespace muster {
namespace {

constexpr absl::string_view kConverseMethod = "/muster.PeerGroup/Converse";
// How long Stop() waits for the last messages to be sent.
constexpr absl::Duration kFlushTimeout = absl::Milliseconds(300);
// Longer than a probe can take.
constexpr absl::Duration kProbeTimeout = absl::Seconds(30);

}  // namespace

PeerLinks::PeerLinks(const Options& options, PeerListener* listener,
                     Network* network, Clock* clock)
    : options_(options),
      admission_(options.self),
      tasks_(GroupTasks(options.self.cluster)),
      rank_(RankOf(options.self.task)),
      incarnation_(options.self.incarnation),
      listener_(listener),
      clock_(clock),
      loop_(
          options.health.heartbeat_interval,
          [this](const TickLoop::Turn& turn) { return TakeTurn(turn); }, clock),
      streams_(tasks_.size()),
      peers_(tasks_.size(), Peer(options.health)) {
  MUSTER_CHECK(rank_ >= 0);
  ReconnectingStream::Listener* const stream_listener = this;
  for (int rank = 0; rank < task_count(); ++rank) {
    ChannelOptions channel;
    channel.address = *options_.self.cluster.Address(tasks_[rank]);
    channel.peer_task_type = std::string(TaskTypeName(tasks_[rank].type));
    channel.peer_task_index = tasks_[rank].index;
    channel.caller = {std::string(TaskTypeName(options_.self.task.type)),
                      options_.self.task.index, incarnation_};
    channel.keepalive = options_.keepalive;
    addresses_.push_back(channel.address);
    if (rank != rank_) {
      streams_[rank] = std::make_unique<ReconnectingStream>(
          ReconnectingStream::Options{.method = std::string(kConverseMethod),
                                      .peer = rank,
                                      .backoff = options_.dial,
                                      .jitter_seed = incarnation_},
          network->Connect(channel), stream_listener, &loop_);
      continue;
    }
    duplicate_probe_ = std::make_unique<DuplicateTaskProbe>(
        DuplicateTaskProbe::Self{.task = options_.self.task,
                                 .incarnation = incarnation_,
                                 .address = options_.self.address},
        channel.address, network->Connect(channel));
  }
}

PeerLinks::~PeerLinks() { Stop(); }

void PeerLinks::AddTo(Service* service) {
  Conversation::Host* const host = this;
  service->AddStream(kConverseMethod, [host](std::shared_ptr<Stream> stream) {
    return std::make_shared<Conversation>(host, std::move(stream));
  });
  duplicate_probe_->AddTo(service);
}

void PeerLinks::Start() { loop_.Start(); }

void PeerLinks::Stop() {
  loop_.Stop();
  std::vector<std::shared_ptr<Conversation>> incoming;
  {
    absl::MutexLock lock(&mutex_);
    is_stopping_ = true;
    for (const Peer& peer : peers_) {
      if (peer.incoming != nullptr) incoming.push_back(peer.incoming);
    }
  }
  for (const auto& conversation : incoming) {
    conversation->stream().Finish(absl::OkStatus());
  }
  for (const auto& stream : streams_) {
    if (stream != nullptr) stream->Finish();
  }
  const absl::Time flush_deadline = clock_->Now() + kFlushTimeout;
  for (const auto& stream : streams_) {
    if (stream == nullptr) continue;
    stream->AwaitClosed(flush_deadline);
    stream->Stop();
  }
  absl::MutexLock lock(&mutex_);
  MUSTER_CHECK(clock_->AwaitWithDeadline(
      &mutex_, absl::Condition(this, &PeerLinks::IsProbeDone),
      clock_->Now() + kProbeTimeout));
}

std::string PeerLinks::Describe(int rank) const {
  if (rank == rank_) return DescribeSelf();
  absl::MutexLock lock(&mutex_);
  const Peer& peer = peers_[rank];
  if (!peer.hello.has_value()) {
    return absl::StrCat(tasks_[rank].ToString(), " (", addresses_[rank], ")");
  }
  return DescribeProcess(tasks_[rank], addresses_[rank],
                         peer.hello->incarnation());
}

std::optional<proto::PeerHello> PeerLinks::hello(int rank) const {
  if (rank == rank_) return admission_.Hello(std::nullopt);
  absl::MutexLock lock(&mutex_);
  return peers_[rank].hello;
}

std::optional<absl::Duration> PeerLinks::SilenceOf(int rank) const {
  if (rank == rank_) return std::nullopt;
  absl::MutexLock lock(&mutex_);
  const PeerHealth& health = peers_[rank].health;
  if (!health.IsSilent()) return std::nullopt;
  return clock_->Now() - health.last_heard();
}

void PeerLinks::Watch() {
  absl::MutexLock lock(&mutex_);
  watching_ = true;
}

void PeerLinks::ExpectEnd(int rank) {
  absl::MutexLock lock(&mutex_);
  peers_[rank].end_expected = true;
  if (rank != rank_) streams_[rank]->StopDialling();
}

bool PeerLinks::Send(int rank, const proto::PeerMessage& message) {
  uint64_t session = 0;
  {
    absl::MutexLock lock(&mutex_);
    session = peers_[rank].welcomed_session;
    if (session == 0 || is_stopping_) return false;
  }
  return streams_[rank]->Send(session, ToMessage(message)).ok();
}

int PeerLinks::RankOf(TaskId task) const {
  const auto it = std::find(tasks_.begin(), tasks_.end(), task);
  return it == tasks_.end() ? -1 : static_cast<int>(it - tasks_.begin());
}

absl::Status PeerLinks::WithPeer(int rank, const absl::Status& status,
                                 absl::string_view attempted) const {
  const Peer& peer = peers_[rank];
  proto::TaskFailure failure;
  failure.set_task_type(std::string(TaskTypeName(tasks_[rank].type)));
  failure.set_task_index(tasks_[rank].index);
  failure.set_address(addresses_[rank]);
  if (peer.hello.has_value()) {
    failure.set_incarnation(peer.hello->incarnation());
  }
  failure.set_attempted(std::string(attempted));
  return WithTaskFailure(status, failure);
}

void PeerLinks::Perform(const Actions& actions) {
  for (const auto& action : actions) action();
}

int PeerLinks::Admit(const std::shared_ptr<Conversation>& conversation,
                     const proto::PeerHello& hello) {
  const absl::Status checked = admission_.Check(hello, /*rank=*/-1);
  Actions actions;
  int admitted_rank = -1;
  if (checked.ok()) {
    const int rank = RankOf(*DecodeTask(hello.task()));
    absl::MutexLock lock(&mutex_);
    if (AdmitPeer(conversation, rank, hello, &actions)) admitted_rank = rank;
  } else if (absl::IsNotFound(checked)) {
    conversation->Refuse(proto::PeerRefusal::WRONG_TASK, checked.message());
    const auto task = DecodeTask(hello.task());
    absl::MutexLock lock(&mutex_);
    // Two processes run as the same task. The other may be at the right
    // address, so probe it.
    if (task.ok() && *task == options_.self.task) probe_due_ = true;
    loop_.Wake();
  } else if (hello.view() != options_.self.view) {
    conversation->Refuse(proto::PeerRefusal::OTHER_VIEW, checked.message(),
                         options_.self.view);
    absl::MutexLock lock(&mutex_);
    NoteView(hello.view(), checked, &actions);
  } else if (GroupErrorKindOf(checked) == GroupErrorKind::kDisagreement) {
    // The caller compares the hellos too, and reports the difference itself.
    proto::PeerMessage answer;
    *answer.mutable_hello() = admission_.Hello(std::nullopt);
    conversation->stream().Send(ToMessage(answer)).IgnoreError();
    conversation->Refuse(proto::PeerRefusal::DISAGREEMENT, checked.message());
    absl::MutexLock lock(&mutex_);
    if (!watching_ && !is_stopping_) {
      actions.push_back([this, checked] { listener_->OnRefused(checked); });
    }
  } else {
    conversation->stream().Finish(checked);
  }
  Perform(actions);
  return admitted_rank;
}

bool PeerLinks::AdmitPeer(const std::shared_ptr<Conversation>& conversation,
                          int rank, const proto::PeerHello& hello,
                          Actions* actions) {
  Peer& peer = peers_[rank];
  const bool is_another = peer.hello.has_value() &&
                          peer.hello->incarnation() != hello.incarnation();
  if (rank == rank_ || (is_another && peer.health.IsAlive())) {
    const std::string there =
        rank == rank_ ? DescribeSelf()
                      : DescribeProcess(tasks_[rank], peer.hello->address(),
                                        peer.hello->incarnation());
    if (std::exchange(peer.refused_incarnation, hello.incarnation()) !=
        hello.incarnation()) {
      LOG(WARNING) << "a second process that calls itself "
                   << DescribeProcess(tasks_[rank], hello.address(),
                                      hello.incarnation())
                   << " was refused: " << there << " is already there";
    }
    conversation->Refuse(proto::PeerRefusal::OCCUPIED,
                         absl::StrCat(there, " is already there"));
    return false;
  }
  if (watching_ && (is_another || peer.is_lost || peer.end_expected)) {
    conversation->Refuse(
        proto::PeerRefusal::CLOSED,
        "the group was formed without this process and has not ended yet");
    return false;
  }
  peer.hello = hello;
  peer.incoming = conversation;
  peer.health.OnAccepted(clock_->Now());
  proto::PeerMessage answer;
  *answer.mutable_hello() = admission_.Hello(std::nullopt);
  actions->push_back([conversation, answer] {
    conversation->stream().Send(ToMessage(answer)).IgnoreError();
  });
  NoteFailure(rank, hello, actions);
  Settle(rank, actions);
  return true;
}

void PeerLinks::OnIncoming(int rank, const proto::PeerMessage& message) {
  {
    absl::MutexLock lock(&mutex_);
    peers_[rank].health.OnReceived(clock_->Now());
    if (is_stopping_) return;
  }
  if (!message.has_ping()) listener_->OnMessage(rank, message);
}

void PeerLinks::OnIncomingDone(int rank, const Conversation* conversation) {
  Actions actions;
  {
    absl::MutexLock lock(&mutex_);
    Peer& peer = peers_[rank];
    if (peer.incoming.get() != conversation) return;
    peer.incoming = nullptr;
    peer.health.OnIncomingEnded();
    if (is_stopping_) return;
    Settle(rank, &actions);
  }
  Perform(actions);
}

Message PeerLinks::OnDial(int rank, uint64_t) {
  proto::PeerMessage hello;
  *hello.mutable_hello() = admission_.Hello(tasks_[rank]);
  return ToMessage(hello);
}

void PeerLinks::OnMessage(int rank, uint64_t session,
                          ReceivedMessage received) {
  const auto message = received.ParseBody<proto::PeerMessage>();
  if (!message.ok()) return;
  Actions actions;
  {
    absl::MutexLock lock(&mutex_);
    if (is_stopping_) return;
    if (message->has_hello()) {
      OnWelcome(rank, session, message->hello(), &actions);
    }
    if (message->has_refusal()) {
      OnRefusal(rank, session, message->refusal(), &actions);
    }
    if (message->has_pong()) peers_[rank].health.OnReceived(clock_->Now());
  }
  Perform(actions);
}

void PeerLinks::OnWelcome(int rank, uint64_t session,
                          const proto::PeerHello& hello, Actions* actions) {
  Peer& peer = peers_[rank];
  const absl::Status checked = admission_.Check(hello, rank);
  if (!checked.ok()) {
    streams_[rank]->End(session, checked);
    if (GroupErrorKindOf(checked) == GroupErrorKind::kDisagreement &&
        !watching_) {
      actions->push_back(
          [this, why = WithPeer(rank, checked, "connecting to it")] {
            listener_->OnRefused(why);
          });
    }
    return;
  }
  const bool is_another = peer.hello.has_value() &&
                          peer.hello->incarnation() != hello.incarnation();
  if (is_another && watching_) {
    // This is the second stream in a row that ends, so the peer is lost.
    streams_[rank]->End(session, absl::UnavailableError(absl::StrCat(
                                     "another process, incarnation ",
                                     IncarnationString(hello.incarnation()),
                                     ", has replaced it")));
    return;
  }
  if (is_another && peer.incoming != nullptr) {
    // The process that answers at the task's address is the right one, so
    // refuse the other.
    peer.incoming->Refuse(
        proto::PeerRefusal::OCCUPIED,
        absl::StrCat(
            DescribeProcess(tasks_[rank], hello.address(), hello.incarnation()),
            " is already there"));
    peer.incoming = nullptr;
    peer.health.OnIncomingEnded();
  }
  peer.hello = hello;
  peer.welcomed_session = session;
  streams_[rank]->MarkEstablished(session);
  peer.occupied_since = absl::InfiniteFuture();
  peer.health.OnWelcomed(clock_->Now());
  NoteFailure(rank, hello, actions);
  Settle(rank, actions);
}

void PeerLinks::NoteView(uint64_t view, const absl::Status& why,
                         Actions* actions) {
  if (view <= options_.self.view || watching_ || is_stopping_) return;
  actions->push_back([this, left_behind = WithGroupErrorKind(
                                why, GroupErrorKind::kLeftBehind)] {
    listener_->OnRefused(left_behind);
  });
}

void PeerLinks::NoteFailure(int rank, const proto::PeerHello& hello,
                            Actions* actions) {
  if (watching_) return;
  if (!options_.self.failure.ok()) {
    actions->push_back([this, rank] { listener_->OnFailureDelivered(rank); });
    return;
  }
  if (!hello.has_failure()) return;
  const absl::Status failure = DecodeFailure(hello.failure());
  const absl::Status why = WithGroupErrorKind(
      WithMessage(failure,
                  absl::StrCat(DescribeProcess(tasks_[rank], addresses_[rank],
                                               hello.incarnation()),
                               " failed before the group was formed: ",
                               failure.message())),
      GroupErrorKind::kPeerFailed);
  actions->push_back([this, why] { listener_->OnRefused(why); });
}

void PeerLinks::OnRefusal(int rank, uint64_t session,
                          const proto::PeerRefusal& refusal, Actions* actions) {
  Peer& peer = peers_[rank];
  streams_[rank]->End(
      session, absl::FailedPreconditionError(
                   absl::StrCat("it refuses this task: ", refusal.message())));
  if (watching_) return;
  std::string text =
      absl::StrCat(tasks_[rank].ToString(), " (", addresses_[rank],
                   ") refuses this task: ", refusal.message());
  NoteView(refusal.view(), absl::AbortedError(text), actions);
  if (refusal.reason() == proto::PeerRefusal::CLOSED &&
      options_.ends_when_closed) {
    actions->push_back(
        [this, why = WithGroupErrorKind(absl::FailedPreconditionError(text),
                                        GroupErrorKind::kLeftBehind)] {
          listener_->OnRefused(why);
        });
    return;
  }
  GroupErrorKind kind = GroupErrorKind::kDisagreement;
  if (refusal.reason() == proto::PeerRefusal::OCCUPIED) {
    const absl::Time now = clock_->Now();
    peer.occupied_since = std::min(peer.occupied_since, now);
    if (now - peer.occupied_since < options_.occupied_timeout) return;
    kind = GroupErrorKind::kDuplicateTask;
    absl::StrAppend(&text, "; this process is ", DescribeSelf(),
                    ". Give every task an index of its own in TF_CONFIG");
  } else if (refusal.reason() != proto::PeerRefusal::DISAGREEMENT) {
    return;
  }
  const absl::Status why = WithPeer(
      rank, WithGroupErrorKind(absl::FailedPreconditionError(text), kind),
      "connecting to it");
  actions->push_back([this, why] { listener_->OnRefused(why); });
}

void PeerLinks::OnEnd(int rank, uint64_t, const absl::Status& why) {
  Actions actions;
  {
    absl::MutexLock lock(&mutex_);
    if (is_stopping_) return;
    peers_[rank].welcomed_session = 0;
    peers_[rank].health.OnOutgoingEnded(streams_[rank]->Reason(why));
    Settle(rank, &actions);
  }
  Perform(actions);
}

absl::Status PeerLinks::FindDuplicateTask() { return duplicate_probe_->Find(); }

void PeerLinks::Probe() {
  duplicate_probe_->Start([this](const absl::Status& found) {
    bool is_refused = false;
    {
      absl::MutexLock lock(&mutex_);
      is_refused = !found.ok() && !watching_ && !is_stopping_;
    }
    if (is_refused) listener_->OnRefused(found);
    absl::MutexLock lock(&mutex_);
    is_probing_ = false;
  });
}

absl::Status PeerLinks::LossOf(int rank, absl::string_view reason) const {
  const Peer& peer = peers_[rank];
  const absl::Duration silence = absl::Trunc(
      clock_->Now() - peer.health.last_heard(), absl::Milliseconds(1));
  const uint64_t incarnation =
      peer.hello.has_value() ? peer.hello->incarnation() : 0;
  return WithPeer(
      rank,
      WithGroupErrorKind(
          absl::UnavailableError(absl::StrCat(
              DescribeProcess(tasks_[rank], addresses_[rank], incarnation),
              " is lost: ", reason, "; last heard of ",
              absl::FormatDuration(silence), " ago by ",
              DescribeProcess(tasks_[rank_], addresses_[rank_], incarnation_))),
          GroupErrorKind::kPeerLost),
      "watching it");
}

void PeerLinks::Settle(int rank, Actions* actions) {
  Peer& peer = peers_[rank];
  const bool is_alive = peer.health.IsAlive();
  if (!watching_ && !is_alive) peer.hello.reset();
  if (peer.is_lost) return;
  const std::string reason =
      watching_ && !peer.end_expected ? peer.health.LossReason() : "";
  peer.is_lost =
      !reason.empty() || (watching_ && peer.end_expected && !is_alive);
  if (peer.is_lost) streams_[rank]->StopDialling();
  if (!reason.empty()) {
    actions->push_back([this, rank, why = LossOf(rank, reason)] {
      listener_->OnLost(rank, why);
    });
    return;
  }
  // Only the loop's thread reports, so that the last report is the newest.
  peer.report_due = true;
  peer.was_interrupted |= !peer.health.IsPresent();
  loop_.Wake();
}

void PeerLinks::PlanReports(int rank, Actions* actions) {
  Peer& peer = peers_[rank];
  if (!std::exchange(peer.report_due, false)) return;
  const bool is_present = peer.health.IsPresent();
  const bool was_present = std::exchange(peer.was_present, is_present);
  const bool was_interrupted = std::exchange(peer.was_interrupted, false);
  // Settle() decides whether a peer of a formed group is lost.
  if (was_interrupted && (!watching_ || peer.end_expected)) {
    const std::string why =
        is_present ? "it left and joined again" : peer.health.MissingReason();
    actions->push_back([this, rank, why] { listener_->OnMissing(rank, why); });
  }
  if (is_present && (!was_present || was_interrupted)) {
    actions->push_back([this, rank] { listener_->OnPresent(rank); });
  }
}

absl::Time PeerLinks::TakeTurn(const TickLoop::Turn& turn) {
  absl::Time next_turn = absl::InfiniteFuture();
  Actions actions;
  {
    absl::MutexLock lock(&mutex_);
    if (probe_due_ && !watching_ && !is_probing_) {
      probe_due_ = false;
      is_probing_ = true;
      actions.push_back([this] { Probe(); });
    }
    for (int rank = 0; rank < task_count(); ++rank) {
      if (rank == rank_) continue;
      PlanReports(rank, &actions);
      if (!turn.is_tick || peers_[rank].is_lost) continue;
      peers_[rank].health.OnTick();
      if (watching_) Settle(rank, &actions);
    }
  }
  Perform(actions);
  for (const auto& stream : streams_) {
    if (stream != nullptr) {
      next_turn = std::min(next_turn, stream->Advance(turn));
    }
  }
  if (!turn.is_tick) return next_turn;
  proto::PeerMessage ping;
  ping.mutable_ping();
  for (int rank = 0; rank < task_count(); ++rank) Send(rank, ping);
  listener_->OnTick();
  return next_turn;
}

}  // namespace muster
