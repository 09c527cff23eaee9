#include "common/net/collectives/peers/peer_links.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/check.h"
#include "common/core/base/log.h"
#include "common/net/cluster/cluster_codec.h"
#include "common/net/collectives/peers/group_error.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/status_detail.h"
#include "proto/rpc.pb.h"

namespace muster {
namespace {

constexpr absl::string_view kConverseMethod = "/muster.PeerGroup/Converse";
// For the last words of this task to go out.
constexpr absl::Duration kFlushTimeout = absl::Milliseconds(300);
// For the transport to tell that cancelled streams are done.
constexpr absl::Duration kCancelTimeout = absl::Seconds(30);

// A missing peer's name and address stand beside the reason already.
std::string WithoutPeer(absl::string_view text, absl::string_view peer) {
  if (!absl::StartsWith(text, peer)) return std::string(text);
  const size_t colon = text.find("): ", peer.size() - 1);
  return std::string(colon == absl::string_view::npos ? text
                                                      : text.substr(colon + 3));
}

}  // namespace

class PeerLinks::Dialled final : public StreamObserver {
 public:
  Dialled(PeerLinks* links, int rank, uint64_t session)
      : links_(links), rank_(rank), session_(session) {}

  void OnMessage(ReceivedMessage received) override {
    const auto message = received.ParseBody<proto::PeerMessage>();
    if (message.ok()) links_->OnAnswer(rank_, session_, *message);
  }
  void OnDone(const absl::Status& status) override {
    links_->OnDialledDone(rank_, session_, status);
  }

 private:
  PeerLinks* const links_;
  const int rank_;
  const uint64_t session_;
};

PeerLinks::PeerLinks(const Options& options, Listener* listener,
                     Network* network, Clock* clock)
    : options_(options),
      admission_(options.self),
      tasks_(GroupTasks(options.self.cluster)),
      rank_(RankOf(options.self.task)),
      incarnation_(options.self.incarnation),
      listener_(listener),
      clock_(clock),
      next_tick_(clock->Now() + options.health.heartbeat_interval) {
  MUSTER_CHECK(rank_ >= 0);
  for (int rank = 0; rank < task_count(); ++rank) {
    ChannelOptions channel;
    channel.address = *options_.self.cluster.Address(tasks_[rank]);
    channel.peer_task_type = std::string(TaskTypeName(tasks_[rank].type));
    channel.peer_task_index = tasks_[rank].index;
    channel.caller = {std::string(TaskTypeName(options_.self.task.type)),
                      options_.self.task.index, incarnation_};
    peers_.emplace_back(options_.health);
    peers_.back().address = channel.address;
    if (rank != rank_) {
      peers_.back().channel = network->Connect(channel);
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

void PeerLinks::Start() {
  thread_ = std::thread([this] { RunLoop(); });
}

void PeerLinks::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
  std::vector<std::shared_ptr<Stream>> outgoing;
  std::vector<std::shared_ptr<Conversation>> incoming;
  {
    absl::MutexLock lock(&mutex_);
    for (Peer& peer : peers_) {
      if (peer.outgoing != nullptr) outgoing.push_back(peer.outgoing);
      if (peer.incoming != nullptr) incoming.push_back(peer.incoming);
    }
  }
  for (const auto& conversation : incoming) {
    conversation->stream().Finish(absl::OkStatus());
  }
  for (const auto& stream : outgoing) stream->Finish(absl::OkStatus());
  {
    absl::MutexLock lock(&mutex_);
    clock_->AwaitWithDeadline(
        &mutex_, absl::Condition(this, &PeerLinks::NoObserversLeft),
        clock_->Now() + kFlushTimeout);
  }
  for (const auto& stream : outgoing) stream->Cancel();
  absl::MutexLock lock(&mutex_);
  MUSTER_CHECK(clock_->AwaitWithDeadline(
      &mutex_, absl::Condition(this, &PeerLinks::NoObserversLeft),
      clock_->Now() + kCancelTimeout));
}

std::string PeerLinks::Describe(int rank) const {
  if (rank == rank_) {
    return DescribeProcess(options_.self.task, options_.self.address,
                           incarnation_);
  }
  absl::MutexLock lock(&mutex_);
  const Peer& peer = peers_[rank];
  if (!peer.hello.has_value()) {
    return absl::StrCat(tasks_[rank].ToString(), " (", peer.address, ")");
  }
  return DescribeProcess(tasks_[rank], peer.address, peer.hello->incarnation());
}

std::optional<proto::PeerHello> PeerLinks::hello(int rank) const {
  if (rank == rank_) return admission_.Hello(std::nullopt);
  absl::MutexLock lock(&mutex_);
  return peers_[rank].hello;
}

void PeerLinks::Watch() {
  absl::MutexLock lock(&mutex_);
  watching_ = true;
}

void PeerLinks::ExpectEnd(int rank) {
  absl::MutexLock lock(&mutex_);
  peers_[rank].end_expected = true;
}

bool PeerLinks::Send(int rank, const proto::PeerMessage& message) {
  std::shared_ptr<Stream> stream;
  {
    absl::MutexLock lock(&mutex_);
    if (!peers_[rank].is_welcomed || stopping_) return false;
    stream = peers_[rank].outgoing;
  }
  return stream->Send(ToMessage(message)).ok();
}

int PeerLinks::RankOf(TaskId task) const {
  const auto it = std::find(tasks_.begin(), tasks_.end(), task);
  return it == tasks_.end() ? -1 : static_cast<int>(it - tasks_.begin());
}

absl::Status PeerLinks::Dress(const Peer& peer, int rank, absl::Status status,
                              absl::string_view attempted) const {
  proto::TaskFailure failure;
  failure.set_task_type(std::string(TaskTypeName(tasks_[rank].type)));
  failure.set_task_index(tasks_[rank].index);
  failure.set_address(peer.address);
  if (peer.hello.has_value()) {
    failure.set_incarnation(peer.hello->incarnation());
  }
  failure.set_attempted(std::string(attempted));
  return WithTaskFailure(std::move(status), failure);
}

PeerLinks::Action& PeerLinks::Add(Action::Kind kind, int rank,
                                  Actions* actions) {
  Action& action = actions->emplace_back();
  action.kind = kind;
  action.rank = rank;
  return action;
}

void PeerLinks::Perform(const Action& action) {
  switch (action.kind) {
    case Action::Kind::kDial:
      Dial(action.rank, action.session);
      break;
    case Action::Kind::kSend:
      action.stream->Send(ToMessage(action.message)).IgnoreError();
      break;
    case Action::Kind::kCancel:
      action.stream->Cancel();
      break;
    case Action::Kind::kPresent:
      listener_->OnPresent(action.rank);
      break;
    case Action::Kind::kMissing:
      listener_->OnMissing(action.rank, action.why.message());
      break;
    case Action::Kind::kLost:
      listener_->OnLost(action.rank, action.why);
      break;
    case Action::Kind::kRefused:
      listener_->OnRefused(action.why);
      break;
    case Action::Kind::kProbe:
      Probe();
      break;
    case Action::Kind::kTick:
      listener_->OnTick();
  }
}

int PeerLinks::Admit(const std::shared_ptr<Conversation>& conversation,
                     const proto::PeerHello& hello) {
  const absl::Status checked = admission_.Check(hello, /*rank=*/-1);
  Actions actions;
  int admitted_rank = -1;
  if (checked.ok()) {
    const int rank = RankOf(*DecodeTask(hello.task()));
    absl::MutexLock lock(&mutex_);
    if (Occupy(conversation, rank, hello, &actions)) admitted_rank = rank;
  } else if (absl::IsNotFound(checked)) {
    conversation->Refuse(proto::PeerRefusal::WRONG_TASK, checked.message());
    const auto task = DecodeTask(hello.task());
    absl::MutexLock lock(&mutex_);
    // Two of one name: the other may be the one at the right address.
    if (task.ok() && *task == options_.self.task) probe_due_ = true;
    wake_ = true;
  } else if (GroupErrorKindOf(checked) == GroupErrorKind::kDisagreement) {
    // The caller finds out by itself, and says it in its own words.
    proto::PeerMessage answer;
    *answer.mutable_hello() = admission_.Hello(std::nullopt);
    conversation->stream().Send(ToMessage(answer)).IgnoreError();
    conversation->Refuse(proto::PeerRefusal::DISAGREEMENT, checked.message());
    absl::MutexLock lock(&mutex_);
    if (!watching_ && !stopping_) {
      Action& action = actions.emplace_back();
      action.kind = Action::Kind::kRefused;
      action.why = checked;
    }
  } else {
    conversation->stream().Finish(checked);
  }
  for (const Action& action : actions) Perform(action);
  return admitted_rank;
}

bool PeerLinks::Occupy(const std::shared_ptr<Conversation>& conversation,
                       int rank, const proto::PeerHello& hello,
                       Actions* actions) {
  Peer& peer = peers_[rank];
  const bool is_another = peer.hello.has_value() &&
                          peer.hello->incarnation() != hello.incarnation();
  if (rank == rank_ || (is_another && peer.health.IsAlive())) {
    const std::string there =
        rank == rank_ ? DescribeProcess(options_.self.task,
                                        options_.self.address, incarnation_)
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
  Action& answer = Add(Action::Kind::kSend, rank, actions);
  // Kept alive by the conversation, which the transport keeps.
  answer.stream =
      std::shared_ptr<Stream>(conversation, &conversation->stream());
  *answer.message.mutable_hello() = admission_.Hello(std::nullopt);
  Settle(rank, actions);
  return true;
}

void PeerLinks::OnIncoming(int rank, const proto::PeerMessage& message) {
  {
    absl::MutexLock lock(&mutex_);
    peers_[rank].health.OnHeard(clock_->Now());
    if (stopping_) return;
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
    if (stopping_) return;
    Settle(rank, &actions);
  }
  for (const Action& action : actions) Perform(action);
}

void PeerLinks::Dial(int rank, uint64_t session) {
  Peer& peer = peers_[rank];
  const std::shared_ptr<Stream> stream = peer.channel->OpenStream(
      kConverseMethod, std::make_shared<Dialled>(this, rank, session));
  bool is_current = false;
  {
    absl::MutexLock lock(&mutex_);
    is_current = peer.session == session;
    if (is_current) peer.outgoing = stream;
  }
  if (!is_current) {
    stream->Cancel();
    return;
  }
  proto::PeerMessage hello;
  *hello.mutable_hello() = admission_.Hello(tasks_[rank]);
  stream->Send(ToMessage(hello)).IgnoreError();  // OnDone() tells.
}

void PeerLinks::OnAnswer(int rank, uint64_t session,
                         const proto::PeerMessage& message) {
  Actions actions;
  {
    absl::MutexLock lock(&mutex_);
    Peer& peer = peers_[rank];
    if (peer.session != session || stopping_) return;
    if (message.has_hello()) OnWelcome(rank, message.hello(), &actions);
    if (message.has_refusal()) OnRefusal(rank, message.refusal(), &actions);
    if (message.has_pong()) peer.health.OnHeard(clock_->Now());
  }
  for (const Action& action : actions) Perform(action);
}

void PeerLinks::OnWelcome(int rank, const proto::PeerHello& hello,
                          Actions* actions) {
  Peer& peer = peers_[rank];
  const absl::Status checked = admission_.Check(hello, rank);
  if (!checked.ok()) {
    peer.refusal = std::string(checked.message());
    Action& cancel = Add(Action::Kind::kCancel, rank, actions);
    cancel.stream = peer.outgoing;
    if (GroupErrorKindOf(checked) == GroupErrorKind::kDisagreement &&
        !watching_) {
      Action& action = Add(Action::Kind::kRefused, rank, actions);
      action.why = Dress(peer, rank, checked, "meeting it");
    }
    return;
  }
  const bool is_another = peer.hello.has_value() &&
                          peer.hello->incarnation() != hello.incarnation();
  if (is_another && watching_) {
    peer.refusal = absl::StrCat("another process, incarnation ",
                                IncarnationString(hello.incarnation()),
                                ", is in its place");
    // The stream that is about to be cancelled is the second one to end.
    peer.health.OnOutgoingEnded(peer.refusal);
    Settle(rank, actions);
    return;
  }
  if (is_another && peer.incoming != nullptr) {
    // Whoever answers at the address is the one that the cluster means.
    peer.incoming->Refuse(
        proto::PeerRefusal::OCCUPIED,
        absl::StrCat(
            DescribeProcess(tasks_[rank], hello.address(), hello.incarnation()),
            " is already there"));
    peer.incoming = nullptr;
    peer.health.OnIncomingEnded();
  }
  peer.hello = hello;
  peer.is_welcomed = true;
  peer.failed_dial_count = 0;
  peer.occupied_since = absl::InfiniteFuture();
  peer.health.OnWelcomed(clock_->Now());
  Settle(rank, actions);
}

void PeerLinks::OnRefusal(int rank, const proto::PeerRefusal& refusal,
                          Actions* actions) {
  Peer& peer = peers_[rank];
  peer.refusal = absl::StrCat("it refuses this task: ", refusal.message());
  if (watching_) return;
  absl::Status why;
  if (refusal.reason() == proto::PeerRefusal::DISAGREEMENT) {
    why = WithGroupErrorKind(absl::FailedPreconditionError(absl::StrCat(
                                 tasks_[rank].ToString(), " (", peer.address,
                                 ") refuses this task: ", refusal.message())),
                             GroupErrorKind::kDisagreement);
  } else if (refusal.reason() == proto::PeerRefusal::OCCUPIED) {
    const absl::Time now = clock_->Now();
    peer.occupied_since = std::min(peer.occupied_since, now);
    if (now - peer.occupied_since < options_.occupied_timeout) return;
    why = WithGroupErrorKind(
        absl::FailedPreconditionError(absl::StrCat(
            tasks_[rank].ToString(), " (", peer.address,
            ") refuses this task: ", refusal.message(), "; this process is ",
            DescribeProcess(options_.self.task, options_.self.address,
                            incarnation_),
            ". Give every task an index of its own in TF_CONFIG")),
        GroupErrorKind::kDuplicateTask);
  } else {
    return;
  }
  Action& action = Add(Action::Kind::kRefused, rank, actions);
  action.why = Dress(peer, rank, std::move(why), "meeting it");
}

void PeerLinks::OnDialledDone(int rank, uint64_t session,
                              const absl::Status& status) {
  Actions actions;
  {
    absl::MutexLock lock(&mutex_);
    Peer& peer = peers_[rank];
    if (peer.session == session && !stopping_) {
      Redial(rank, status);
      Settle(rank, &actions);
    }
  }
  for (const Action& action : actions) Perform(action);
  absl::MutexLock lock(&mutex_);
  --observer_count_;
}

void PeerLinks::Redial(int rank, const absl::Status& status) {
  Peer& peer = peers_[rank];
  ++peer.session;
  peer.is_open = false;
  peer.is_welcomed = false;
  peer.outgoing = nullptr;
  const std::string reason =
      !peer.refusal.empty() ? std::exchange(peer.refusal, "")
      : status.ok()         ? std::string("it closed the stream")
                    : WithoutPeer(status.message(), peer.channel->peer());
  peer.health.OnOutgoingEnded(reason);
  // A connection that broke is made again at once, if anybody is there.
  peer.next_dial = clock_->Now();
  if (peer.failed_dial_count > 0) {
    peer.next_dial += BackoffDelay(options_.dial, peer.failed_dial_count,
                                   incarnation_ ^ peer.session);
  }
  ++peer.failed_dial_count;
  wake_ = true;
}

absl::Status PeerLinks::FindDuplicateTask() { return duplicate_probe_->Find(); }

void PeerLinks::Probe() {
  duplicate_probe_->Start([this](const absl::Status& found) {
    bool is_refused = false;
    {
      absl::MutexLock lock(&mutex_);
      is_refused = !found.ok() && !watching_ && !stopping_;
    }
    if (is_refused) listener_->OnRefused(found);
    absl::MutexLock lock(&mutex_);
    --observer_count_;
  });
}

absl::Status PeerLinks::LossOf(int rank, absl::string_view reason) const {
  const Peer& peer = peers_[rank];
  const absl::Duration silence = absl::Trunc(
      clock_->Now() - peer.health.last_heard(), absl::Milliseconds(1));
  const uint64_t incarnation =
      peer.hello.has_value() ? peer.hello->incarnation() : 0;
  return Dress(peer, rank,
               WithGroupErrorKind(
                   absl::UnavailableError(absl::StrCat(
                       DescribeProcess(tasks_[rank], peer.address, incarnation),
                       " is lost: ", reason, "; last heard of ",
                       absl::FormatDuration(silence), " ago")),
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
  if (!reason.empty()) {
    Action& action = Add(Action::Kind::kLost, rank, actions);
    action.why = LossOf(rank, reason);
    return;
  }
  // Told by one thread only, so that the last word is the true one.
  peer.news_due = true;
  peer.was_interrupted |= !peer.health.IsPresent();
  wake_ = true;
}

void PeerLinks::PlanNews(int rank, Actions* actions) {
  Peer& peer = peers_[rank];
  if (!std::exchange(peer.news_due, false)) return;
  const bool is_present = peer.health.IsPresent();
  const bool was_present = std::exchange(peer.was_present, is_present);
  const bool was_interrupted = std::exchange(peer.was_interrupted, false);
  // Whether one that was in the group is lost is not decided here.
  if (was_interrupted && (!watching_ || peer.end_expected)) {
    Action& missing = Add(Action::Kind::kMissing, rank, actions);
    missing.why = absl::UnavailableError(
        is_present ? "it went and came again" : peer.health.MissingReason());
  }
  if (is_present && (!was_present || was_interrupted)) {
    Add(Action::Kind::kPresent, rank, actions);
  }
}

void PeerLinks::RunLoop() {
  Actions actions;
  while (true) {
    actions.clear();
    {
      absl::MutexLock lock(&mutex_);
      clock_->AwaitWithDeadline(
          &mutex_, absl::Condition(this, &PeerLinks::MayWake), NextWakeUp());
      if (stopping_) return;
      wake_ = false;
      const absl::Time now = clock_->Now();
      const bool is_tick = now >= next_tick_;
      if (is_tick) next_tick_ = now + options_.health.heartbeat_interval;
      Plan(now, is_tick, &actions);
    }
    for (const Action& action : actions) Perform(action);
  }
}

void PeerLinks::Plan(absl::Time now, bool is_tick, Actions* actions) {
  if (probe_due_ && !watching_) {
    probe_due_ = false;
    ++observer_count_;
    actions->emplace_back().kind = Action::Kind::kProbe;
  }
  for (int rank = 0; rank < task_count(); ++rank) {
    Peer& peer = peers_[rank];
    if (rank == rank_) continue;
    PlanNews(rank, actions);
    if (peer.is_lost) continue;
    if (is_tick) {
      peer.health.OnTick();
      if (watching_) Settle(rank, actions);
    }
    if (!peer.is_open && now >= peer.next_dial && !peer.end_expected) {
      peer.is_open = true;
      ++observer_count_;
      Action& dial = Add(Action::Kind::kDial, rank, actions);
      dial.session = peer.session;
    } else if (is_tick && peer.is_welcomed) {
      Action& ping = Add(Action::Kind::kSend, rank, actions);
      ping.stream = peer.outgoing;
      ping.message.mutable_ping();
    }
  }
  if (is_tick) actions->emplace_back().kind = Action::Kind::kTick;
}

absl::Time PeerLinks::NextWakeUp() const {
  absl::Time wake_up = next_tick_;
  for (int rank = 0; rank < task_count(); ++rank) {
    const Peer& peer = peers_[rank];
    if (rank == rank_ || peer.is_open || peer.is_lost || peer.end_expected) {
      continue;
    }
    wake_up = std::min(wake_up, peer.next_dial);
  }
  return wake_up;
}

}  // namespace muster
