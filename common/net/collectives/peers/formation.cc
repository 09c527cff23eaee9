#include "common/net/collectives/peers/formation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/status_message.h"
#include "common/core/system/log.h"
#include "common/core/system/wait_line.h"
#include "common/net/cluster/cluster_codec.h"
#include "common/net/cluster/name_lookup.h"
#include "common/net/collectives/peers/group_error.h"
#include "common/net/collectives/transports/transports.h"
#include "common/net/rpc/status_detail.h"

namespace muster {
namespace {

std::vector<TaskId> OtherTasks(const PeerLinks& links) {
  std::vector<TaskId> tasks;
  for (int rank = 0; rank < links.task_count(); ++rank) {
    if (rank != links.rank()) tasks.push_back(links.task(rank));
  }
  return tasks;
}

bool IsCommand(const proto::PeerMessage& message) {
  return message.has_proposal() || message.has_connect() || message.has_go();
}

// A task that has not connected by the deadline counts as lost, because a
// restart of all tasks may succeed.
absl::Status OfLostPeer(const absl::Status& status) {
  return absl::IsDeadlineExceeded(status)
             ? WithGroupErrorKind(status, GroupErrorKind::kPeerLost)
             : status;
}

}  // namespace

Formation::Formation(const Options& options, PeerLinks* links,
                     GroupTransport* transport, OnPlan on_plan, Clock* clock)
    : options_(options),
      links_(links),
      transport_(transport),
      on_plan_(std::move(on_plan)),
      clock_(clock),
      started_(clock->Now()),
      missing_(options.cluster, OtherTasks(*links), clock,
               {.report_interval = options.report_interval,
                .names = NameLookup::OfSystem()}),
      generation_(options.last_generation),
      present_(links->task_count()),
      missing_count_(links->task_count() - 1),
      replies_(links->task_count()) {
  for (int rank = 0; rank < links->task_count(); ++rank) {
    if (rank != links->rank()) undelivered_.insert(rank);
  }
}

void Formation::OnPresent(int rank) {
  absl::MutexLock lock(&mutex_);
  missing_.MarkPresent(links_->task(rank));
  if (present_[rank]) return;
  present_[rank] = true;
  --missing_count_;
}

void Formation::OnMissing(int rank, absl::string_view reason) {
  absl::MutexLock lock(&mutex_);
  missing_.MarkMissing(links_->task(rank), reason);
  if (!present_[rank]) return;
  present_[rank] = false;
  ++missing_count_;
  task_left_ = true;
}

void Formation::OnRefused(const absl::Status& why) {
  missing_.Fail(why);
  absl::MutexLock lock(&mutex_);
  refused_.Update(why);
}

void Formation::OnFailureDelivered(int rank) {
  absl::MutexLock lock(&mutex_);
  undelivered_.erase(rank);
}

void Formation::OnMessage(int rank, const proto::PeerMessage& message) {
  if (rank == 0 && message.has_failure()) {
    const absl::Status error = DecodeFailure(message.failure());
    OnRefused(WithGroupErrorKind(
        WithMessage(error, absl::StrCat(links_->Describe(0),
                                        " failed before the group was formed: ",
                                        error.message())),
        GroupErrorKind::kPeerFailed));
    return;
  }
  absl::MutexLock lock(&mutex_);
  if (rank == 0 && IsCommand(message)) command_ = message;
  if (!message.has_reply() || message.generation() != awaited_generation_ ||
      message.reply().stage() != awaited_stage_ || replies_[rank].has_value()) {
    return;
  }
  replies_[rank] = message.reply();
  ++reply_count_;
}

absl::StatusOr<FormedGroup> Formation::Run(
    absl::Time deadline,
    absl::FunctionRef<void(absl::string_view line)> report) {
  if (!options_.failure.ok()) return SendFailure(deadline);
  return links_->rank() == 0 ? Lead(deadline, report)
                             : Follow(deadline, report);
}

absl::Status Formation::SendFailure(absl::Time deadline) {
  const auto are_told = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return undelivered_.empty();
  };
  std::set<int> untold;
  {
    absl::MutexLock lock(&mutex_);
    clock_->AwaitWithDeadline(&mutex_, absl::Condition(&are_told), deadline);
    untold = undelivered_;
  }
  for (const int rank : untold) {
    LOG(WARNING) << links_->Describe(rank)
                 << " was not notified that this task cannot train";
  }
  return options_.failure;
}

absl::StatusOr<FormedGroup> Formation::Lead(
    absl::Time deadline, absl::FunctionRef<void(absl::string_view)> report) {
  while (true) {
    const absl::Status complete = OfLostPeer(missing_.Await(deadline, report));
    if (!complete.ok()) {
      return absl::IsDeadlineExceeded(complete) ? GiveUp({}, complete)
                                                : complete;
    }
    {
      absl::MutexLock lock(&mutex_);
      task_left_ = missing_count_ > 0;
    }
    const std::optional<GroupPlan> plan = MakePlan();
    if (!plan.has_value()) continue;  // A task has just left again.
    if (plan->transport == nullptr) {
      return GiveUp(*plan, absl::UnimplementedError(absl::StrCat(
                               "no transport can connect the group: ",
                               plan->transport_reason)));
    }
    Attempt attempt = LeadAttempt(*plan, deadline, report);
    switch (attempt.outcome) {
      case Attempt::Outcome::kFormed:
        return std::move(attempt.group);
      case Attempt::Outcome::kOver:
        return attempt.status;
      case Attempt::Outcome::kRetry:
        LOG(WARNING) << "the group could not be formed: "
                     << attempt.status.message() << "; trying again";
        continue;
      case Attempt::Outcome::kTransportFailed:
        break;
    }
    const std::string transport = plan->transport->name();
    failures_[transport] =
        absl::StrCat("it could not connect: ", attempt.status.message());
    if (Choose().transport == nullptr || clock_->Now() >= deadline) {
      return GiveUp(*plan, attempt.status);
    }
    LOG(WARNING) << transport << " cannot be used, which will cost speed: "
                 << attempt.status.message();
  }
}

TransportChoice Formation::Choose() const {
  const auto choose = [this](CommunicationImplementation implementation) {
    return ChooseTransport(implementation, offers_, options_.replicas_per_task,
                           failures_);
  };
  TransportChoice choice = choose(options_.implementation);
  if (choice.transport != nullptr || options_.implementation_is_required) {
    return choice;
  }
  TransportChoice ring = choose(CommunicationImplementation::kRing);
  ring.reason = absl::StrCat(choice.reason, "; ", ring.reason);
  return ring;
}

absl::Status Formation::GiveUp(const GroupPlan& plan, const absl::Status& why) {
  proto::PeerMessage failure = Stamped(plan);
  *failure.mutable_failure() = EncodeFailure(why, true);
  SendToAll(failure);
  return why;
}

std::optional<GroupPlan> Formation::MakePlan() {
  GroupPlan plan;
  plan.generation = ++generation_;
  plan.token = RandomIdentity();
  plan.self = links_->rank();
  plan.replicas_per_task = options_.replicas_per_task;
  offers_.clear();
  for (int rank = 0; rank < links_->task_count(); ++rank) {
    const std::optional<proto::PeerHello> hello = links_->hello(rank);
    if (!hello.has_value()) return std::nullopt;
    const TaskId task = links_->task(rank);
    plan.members.push_back({.identity = {std::string(TaskTypeName(task.type)),
                                         task.index, hello->incarnation()},
                            .address = options_.cluster.Address(task).value(),
                            .host = hello->transports().host()});
    offers_.push_back(hello->transports());
  }
  TransportChoice choice = Choose();
  plan.transport = choice.transport;
  plan.transport_reason = std::move(choice.reason);
  return plan;
}

proto::PeerMessage Formation::Proposal(const GroupPlan& plan) const {
  proto::PeerMessage proposal = Stamped(plan);
  proposal.mutable_proposal()->set_transport(plan.transport->name());
  proposal.mutable_proposal()->set_transport_reason(plan.transport_reason);
  for (int rank = 0; rank < links_->task_count(); ++rank) {
    const GroupPlan::Member& member = plan.members[rank];
    auto* const described = proposal.mutable_proposal()->add_members();
    *described->mutable_task() = EncodeTask(links_->task(rank));
    described->set_incarnation(member.identity.incarnation);
    described->set_address(member.address);
    described->set_host(member.host);
  }
  return proposal;
}

Formation::Attempt Formation::LeadAttempt(
    const GroupPlan& plan, absl::Time deadline,
    absl::FunctionRef<void(absl::string_view)> report) {
  ExpectReplies(plan, proto::FormReply::PREPARED);
  on_plan_(plan);
  const auto own = transport_->Prepare(plan);
  if (!own.ok()) {
    return NotFormed(Attempt::Outcome::kTransportFailed, own.status());
  }
  SendToAll(Proposal(plan));
  Attempt collected = CollectReplies(deadline, report);
  if (collected.outcome != Attempt::Outcome::kFormed) return collected;

  std::vector<proto::ReplicaEndpoint> endpoints = *own;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& reply : replies_) {
      if (!reply.has_value()) continue;  // That of this rank.
      endpoints.insert(endpoints.end(), reply->endpoints().begin(),
                       reply->endpoints().end());
    }
  }
  proto::PeerMessage connect = Stamped(plan);
  connect.mutable_connect()->mutable_endpoints()->Assign(endpoints.begin(),
                                                         endpoints.end());
  ExpectReplies(plan, proto::FormReply::CONNECTED);
  SendToAll(connect);
  auto communicators = transport_->Connect(
      endpoints, std::min(deadline, clock_->Now() + options_.connect_timeout));
  if (!communicators.ok()) {
    return NotFormed(Attempt::Outcome::kTransportFailed,
                     communicators.status());
  }
  // Members that cannot connect report it at their own deadline, which is later
  // than the leader's.
  collected = CollectReplies(
      std::min(deadline, clock_->Now() + 2 * options_.connect_timeout), report);
  if (collected.outcome == Attempt::Outcome::kOver &&
      absl::IsDeadlineExceeded(collected.status) && clock_->Now() < deadline) {
    collected.outcome = Attempt::Outcome::kTransportFailed;
  }
  if (collected.outcome != Attempt::Outcome::kFormed) return collected;
  links_->Watch();
  proto::PeerMessage go = Stamped(plan);
  go.mutable_go();
  SendToAll(go);
  return Formed(plan, *std::move(communicators));
}

void Formation::ExpectReplies(const GroupPlan& plan,
                              proto::FormReply::Stage stage) {
  absl::MutexLock lock(&mutex_);
  awaited_generation_ = plan.generation;
  awaited_stage_ = stage;
  std::fill(replies_.begin(), replies_.end(), std::nullopt);
  reply_count_ = 0;
}

Formation::Attempt Formation::CollectReplies(
    absl::Time deadline, absl::FunctionRef<void(absl::string_view)> report) {
  const auto all_have_come = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return reply_count_ == links_->task_count() - 1;
  };
  const auto subject = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return UnansweredTasks();
  };
  const Interruption interruption =
      Await(absl::Condition(&all_have_come), deadline, subject, report);
  absl::MutexLock lock(&mutex_);
  if (interruption != Interruption::kNone) {
    return Interrupted(interruption, UnansweredTasks());
  }
  for (int rank = 0; rank < links_->task_count(); ++rank) {
    const auto& reply = replies_[rank];
    if (!reply.has_value() || !reply->has_error()) continue;
    const absl::Status error = DecodeStatus(reply->error());
    // kAborted: the member is connected to another process of a task than the
    // leader is. One of the two will reconnect, so the attempt is repeated.
    return NotFormed(
        absl::IsAborted(error) ? Attempt::Outcome::kRetry
                               : Attempt::Outcome::kTransportFailed,
        WithMessage(error, absl::StrCat(links_->task(rank).ToString(), ": ",
                                        error.message())));
  }
  return Formed({}, {});
}

absl::StatusOr<FormedGroup> Formation::Follow(
    absl::Time deadline, absl::FunctionRef<void(absl::string_view)> report) {
  while (true) {
    RETURN_IF_ERROR(OfLostPeer(missing_.Await(deadline, report)));
    {
      absl::MutexLock lock(&mutex_);
      task_left_ = missing_count_ > 0;
    }
    Attempt attempt;
    const std::optional<proto::PeerMessage> command =
        NextCommand(deadline, report, &attempt);
    // Any other command belongs to an attempt that has ended.
    if (command.has_value() && command->has_proposal()) {
      attempt = FollowProposal(*command, deadline, report);
    }
    if (attempt.outcome == Attempt::Outcome::kFormed) {
      return std::move(attempt.group);
    }
    if (attempt.outcome == Attempt::Outcome::kOver) return attempt.status;
  }
}

Formation::Attempt Formation::FollowProposal(
    const proto::PeerMessage& proposal, absl::Time deadline,
    absl::FunctionRef<void(absl::string_view)> report) {
  proto::PeerMessage reply;
  reply.set_generation(proposal.generation());
  reply.set_token(proposal.token());
  const auto answer = [&](proto::FormReply::Stage stage,
                          const absl::Status& status) {
    reply.mutable_reply()->set_stage(stage);
    if (!status.ok()) {
      *reply.mutable_reply()->mutable_error() = EncodeStatus(status);
    }
    // An error is ignored: a leader that cannot be reached is reported missing,
    // which ends the attempt.
    links_->Send(0, reply);
    return NotFormed(Attempt::Outcome::kRetry, status);
  };

  const absl::StatusOr<GroupPlan> plan = PlanOf(proposal);
  if (!plan.ok()) return answer(proto::FormReply::PREPARED, plan.status());
  on_plan_(*plan);
  const auto endpoints = transport_->Prepare(*plan);
  if (endpoints.ok()) {
    reply.mutable_reply()->mutable_endpoints()->Assign(endpoints->begin(),
                                                       endpoints->end());
  }
  Attempt attempt = answer(proto::FormReply::PREPARED, endpoints.status());
  if (!endpoints.ok()) return attempt;
  reply.mutable_reply()->clear_endpoints();

  std::optional<proto::PeerMessage> command =
      NextCommandOf(*plan, deadline, report, &attempt);
  if (!command.has_value() || !command->has_connect()) return attempt;
  const std::vector<proto::ReplicaEndpoint> all(
      command->connect().endpoints().begin(),
      command->connect().endpoints().end());
  auto communicators = transport_->Connect(
      all, std::min(deadline, clock_->Now() + options_.connect_timeout));
  attempt = answer(proto::FormReply::CONNECTED, communicators.status());
  if (!communicators.ok()) return attempt;
  command = NextCommandOf(*plan, deadline, report, &attempt);
  if (!command.has_value() || !command->has_go()) return attempt;
  links_->Watch();
  return Formed(*plan, *std::move(communicators));
}

absl::StatusOr<GroupPlan> Formation::PlanOf(
    const proto::PeerMessage& proposal) const {
  GroupPlan plan;
  plan.generation = proposal.generation();
  plan.token = proposal.token();
  plan.transport = FindTransport(proposal.proposal().transport());
  if (plan.transport == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the leader chose the transport \"", proposal.proposal().transport(),
        "\", which this version does not have"));
  }
  plan.transport_reason = proposal.proposal().transport_reason();
  plan.self = links_->rank();
  plan.replicas_per_task = options_.replicas_per_task;
  if (proposal.proposal().members_size() != links_->task_count()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the leader proposes a group of ", proposal.proposal().members_size(),
        " tasks; there are ", links_->task_count()));
  }
  for (int rank = 0; rank < links_->task_count(); ++rank) {
    const auto& member = proposal.proposal().members(rank);
    const std::optional<proto::PeerHello> hello = links_->hello(rank);
    if (!hello.has_value() || hello->incarnation() != member.incarnation()) {
      return absl::AbortedError(absl::StrCat("it has met another process as ",
                                             links_->task(rank).ToString(),
                                             " than the leader has"));
    }
    const TaskId task = links_->task(rank);
    plan.members.push_back({.identity = {std::string(TaskTypeName(task.type)),
                                         task.index, member.incarnation()},
                            .address = member.address(),
                            .host = member.host()});
  }
  return plan;
}

std::optional<proto::PeerMessage> Formation::NextCommand(
    absl::Time deadline, absl::FunctionRef<void(absl::string_view)> report,
    Attempt* attempt) {
  const auto has_command = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return command_.has_value();
  };
  const auto subject = [this] {
    return absl::StrCat(links_->Describe(0), " to form the group");
  };
  const Interruption interruption =
      Await(absl::Condition(&has_command), deadline, subject, report);
  absl::MutexLock lock(&mutex_);
  if (interruption != Interruption::kNone) {
    *attempt = Interrupted(interruption, subject());
    return std::nullopt;
  }
  return std::exchange(command_, std::nullopt);
}

std::optional<proto::PeerMessage> Formation::NextCommandOf(
    const GroupPlan& plan, absl::Time deadline,
    absl::FunctionRef<void(absl::string_view)> report, Attempt* attempt) {
  std::optional<proto::PeerMessage> command =
      NextCommand(deadline, report, attempt);
  if (!command.has_value() || (command->generation() == plan.generation &&
                               command->token() == plan.token)) {
    return command;
  }
  *attempt = NotFormed(Attempt::Outcome::kRetry,
                       absl::AbortedError("the leader has started again"));
  absl::MutexLock lock(&mutex_);
  if (!command_.has_value()) command_ = std::move(command);
  return std::nullopt;
}

Formation::Interruption Formation::Await(
    const absl::Condition& condition, absl::Time deadline,
    absl::FunctionRef<std::string()> waiting_for,
    absl::FunctionRef<void(absl::string_view)> report) {
  ReportPace pace(clock_->Now(), options_.report_interval);
  const auto may_continue = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return condition.Eval() || task_left_ || !refused_.ok();
  };
  while (true) {
    std::string line;
    {
      absl::MutexLock lock(&mutex_);
      if (clock_->AwaitWithDeadline(&mutex_, absl::Condition(&may_continue),
                                    std::min(deadline, pace.next()))) {
        if (!refused_.ok()) return Interruption::kRefused;
        if (condition.Eval()) return Interruption::kNone;
        return Interruption::kTaskLeft;
      }
      const absl::Time now = clock_->Now();
      if (now >= deadline) return Interruption::kDeadline;
      if (!pace.IsDue(now)) continue;
      line = absl::StrCat("waiting for ", waiting_for(), ", ",
                          absl::ToInt64Seconds(now - started_), " s");
    }
    report(line);
  }
}

Formation::Attempt Formation::Formed(
    GroupPlan plan, std::vector<std::unique_ptr<Communicator>> communicators) {
  Attempt attempt;
  attempt.outcome = Attempt::Outcome::kFormed;
  attempt.group.plan = std::move(plan);
  attempt.group.communicators = std::move(communicators);
  return attempt;
}

Formation::Attempt Formation::NotFormed(Attempt::Outcome outcome,
                                        absl::Status status) {
  Attempt attempt;
  attempt.outcome = outcome;
  attempt.status = std::move(status);
  return attempt;
}

Formation::Attempt Formation::Interrupted(Interruption interruption,
                                          absl::string_view subject) {
  switch (interruption) {
    case Interruption::kNone:
      break;
    case Interruption::kTaskLeft:
      return NotFormed(Attempt::Outcome::kRetry,
                       absl::AbortedError(absl::StrCat("a task has left: ",
                                                       missing_.Describe())));
    case Interruption::kRefused:
      return NotFormed(Attempt::Outcome::kOver, refused_);
    case Interruption::kDeadline:
      return NotFormed(
          Attempt::Outcome::kOver,
          WithGroupErrorKind(absl::DeadlineExceededError(absl::StrCat(
                                 "gave up after ",
                                 absl::ToInt64Seconds(clock_->Now() - started_),
                                 " s waiting for ", subject)),
                             GroupErrorKind::kPeerLost));
  }
  return Attempt();
}

std::string Formation::UnansweredTasks() const {
  std::vector<std::string> tasks;
  for (int rank = 0; rank < links_->task_count(); ++rank) {
    if (rank == links_->rank() || replies_[rank].has_value()) continue;
    tasks.push_back(links_->task(rank).ToString());
  }
  return absl::StrCat(absl::StrJoin(tasks, ", "),
                      awaited_stage_ == proto::FormReply::PREPARED
                          ? " to have met all others"
                          : " to connect with the others");
}

void Formation::SendToAll(const proto::PeerMessage& message) {
  for (int rank = 0; rank < links_->task_count(); ++rank) {
    // An error is ignored: a task that cannot be reached is reported missing,
    // which ends the attempt.
    if (rank != links_->rank()) links_->Send(rank, message);
  }
}

proto::PeerMessage Formation::Stamped(const GroupPlan& plan) const {
  proto::PeerMessage message;
  message.set_generation(plan.generation);
  message.set_token(plan.token);
  return message;
}

}  // namespace muster
