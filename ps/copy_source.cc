#include "ps/copy_source.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/core/system/log.h"
#include "common/core/tensor/tensor.h"
#include "common/net/rpc/service.h"
#include "ps/client/methods.h"
#include "ps/state_records.h"

namespace muster {
namespace {

// Parts of the state that the holder has not applied. More would only fill its
// memory.
constexpr size_t kUnappliedBytesMax = size_t{16} << 20;
// While the state is sent, answers wait if the holder has not received so much.
constexpr size_t kUnreceivedBytesMax = size_t{64} << 20;
constexpr size_t kUnreceivedCountMax = 1024;
constexpr absl::Duration kReportInterval = absl::Seconds(5);

// Copies the bytes of `pieces` into one tensor. Returns none if there are no
// bytes.
std::vector<Tensor> ToTensors(
    absl::Span<const absl::Span<const uint8_t>> pieces) {
  size_t size_bytes = 0;
  for (const auto& piece : pieces) size_bytes += piece.size();
  if (size_bytes == 0) return {};
  Tensor bytes(DType::kUint8, Shape({static_cast<int64_t>(size_bytes)}));
  uint8_t* end = bytes.mutable_raw_data();
  for (const auto& piece : pieces) {
    std::memcpy(end, piece.data(), piece.size());
    end += piece.size();
  }
  return {std::move(bytes)};
}

size_t SizeOf(const Message& message) {
  return message.body.size() +
         (message.tensors.empty() ? 0 : message.tensors[0].size_bytes());
}

void CallAll(std::vector<CopySource::Then> released,
             const absl::Status& status) {
  for (CopySource::Then& then : released) then(status);
}

}  // namespace

// The stream to one holder.
class CopySource::Session final : public StreamObserver {
 public:
  Session(CopySource* source, proto::CopyHolder holder,
          std::unique_ptr<Channel> channel)
      : source_(source),
        holder_(std::move(holder)),
        channel_(std::move(channel)) {}

  void Open(const std::shared_ptr<Session>& self) {
    stream_ = channel_->OpenStream(kCopyMethod, self);
  }
  const proto::CopyHolder& holder() const { return holder_; }
  std::string peer() const { return channel_->peer(); }
  Stream& stream() { return *stream_; }

  void OnMessage(ReceivedMessage message) override {
    const auto event = message.ParseBody<proto::CopyEvent>();
    if (event.ok()) source_->OnEvent(this, *event);
  }
  void OnDone(const absl::Status& status) override {
    source_->OnEnd(this, status);
  }

 private:
  CopySource* const source_;
  const proto::CopyHolder holder_;
  const std::unique_ptr<Channel> channel_;
  std::shared_ptr<Stream> stream_;
};

CopySource::CopySource(ParameterShard* shard,
                       std::function<void(const absl::Status&)> on_replaced)
    : shard_(shard),
      on_replaced_(std::move(on_replaced)),
      thread_([this] { RunLoop(); }) {}

CopySource::~CopySource() {
  Drop();
  {
    absl::MutexLock lock(&mutex_);
    is_stopping_ = true;
  }
  thread_.join();
  absl::MutexLock lock(&mutex_);
  // The streams were cancelled, which ends them.
  mutex_.Await(absl::Condition(this, &CopySource::HasNoSession));
}

void CopySource::DestroyEndedSessions() {
  std::vector<std::shared_ptr<Session>> ended;
  absl::MutexLock lock(&mutex_);
  ended.swap(ended_sessions_);
}

bool CopySource::HasNoSession() const { return session_count_ == 0; }

// ---- The holder.

void CopySource::Keep(const proto::CopyHolder& holder,
                      std::unique_ptr<Channel> channel,
                      const Identity& identity) {
  std::vector<Then> released;
  std::shared_ptr<Session> session;
  {
    absl::MutexLock lock(&mutex_);
    if (HasEnded() || is_stopping_) return;
    if (session_ != nullptr && problem_.empty() &&
        session_->holder().incarnation() == holder.incarnation()) {
      return;
    }
    released = DropLocked();
    session = std::make_shared<Session>(this, holder, std::move(channel));
    ++session_count_;
  }
  CallAll(std::move(released), absl::OkStatus());
  session->Open(session);
  absl::MutexLock lock(&mutex_);
  identity_ = identity;
  session_ = std::move(session);
  phase_ = Phase::kFilling;
  is_fill_due_ = true;
}

void CopySource::Drop() {
  std::vector<Then> released;
  {
    absl::MutexLock lock(&mutex_);
    if (!HasEnded()) released = DropLocked();
  }
  CallAll(std::move(released), absl::OkStatus());
}

void CopySource::End(const absl::Status& why) {
  shard_->SetRecorder(nullptr);
  std::vector<Then> released;
  {
    absl::MutexLock lock(&mutex_);
    released = DropLocked();
    // An exchange that is being applied has not begun to wait.
    phase_ = Phase::kEnded;
    problem_ = std::string(why.message());
  }
  CallAll(std::move(released), why);
}

void CopySource::Reopen() {
  absl::MutexLock lock(&mutex_);
  phase_ = Phase::kNone;
  problem_.clear();
  log_number_ = 0;
  received_number_ = 0;
}

std::vector<CopySource::Then> CopySource::DropLocked() {
  if (session_ != nullptr) {
    session_->stream().Cancel();
    ended_sessions_.push_back(std::move(session_));
  }
  session_ = nullptr;
  phase_ = Phase::kNone;
  problem_.clear();
  is_fill_due_ = false;
  is_sending_ = false;
  is_active_.store(false, std::memory_order_release);
  unreceived_.clear();
  unreceived_bytes_ = 0;
  unapplied_.clear();
  unapplied_bytes_ = 0;
  applied_count_ = 0;
  return TakeReleased();
}

void CopySource::Break(const std::string& problem) {
  if (!problem_.empty()) return;
  problem_ = problem.empty() ? "its stream ended" : problem;
  LOG(WARNING) << session_->peer() << " keeps no copy any longer: " << problem_;
  is_sending_ = false;
  session_->stream().Cancel();
  // The coordinator does not know this copy as a complete one.
  if (phase_ != Phase::kComplete) {
    phase_ = Phase::kFilling;
    is_active_.store(false, std::memory_order_release);
  }
}

void CopySource::RequestSnapshot() {
  absl::MutexLock lock(&mutex_);
  if (session_ != nullptr) {
    Break("variables were changed by a restore, which it cannot repeat");
  }
}

absl::Status CopySource::BeginEmpty(uint64_t) {
  Drop();
  return absl::OkStatus();
}

// ---- Sending.

bool CopySource::MayWake() const {
  return is_fill_due_ || is_stopping_ ||
         (!waiters_.empty() && !problem_.empty());
}

void CopySource::RunLoop() {
  Clock* const clock = Clock::Real();
  while (true) {
    std::shared_ptr<Session> session;
    {
      absl::MutexLock lock(&mutex_);
      // The wait has no deadline. It ends at the latest with this object.
      mutex_.Await(absl::Condition(this, &CopySource::MayWake));
      if (is_stopping_) return;
      if (!is_fill_due_) {
        ReportWait();
        continue;
      }
      is_fill_due_ = false;
      session = session_;
    }
    DestroyEndedSessions();
    const absl::Time start = clock->Now();
    const absl::Status filled = Fill(session);
    absl::MutexLock lock(&mutex_);
    if (session != session_) continue;
    if (!filled.ok()) {
      Break(std::string(filled.message()));
    } else {
      LOG(INFO) << "sent the state of this server to " << session->peer()
                << " in " << absl::FormatDuration(clock->Now() - start);
    }
  }
}

void CopySource::ReportWait() {
  Clock* const clock = Clock::Real();
  const auto is_over = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return is_stopping_ || is_fill_due_ || waiters_.empty();
  };
  if (clock->AwaitWithDeadline(&mutex_, absl::Condition(&is_over),
                               clock->Now() + kReportInterval)) {
    return;
  }
  LOG(WARNING) << waiters_.size() << " answers wait for the coordinator, which "
               << "may let " << session_->peer()
               << " take over; that one keeps no copy any longer: " << problem_;
}

absl::Status CopySource::Fill(const std::shared_ptr<Session>& session) {
  proto::ServerLogJob job;
  ASSIGN_OR_RETURN(
      const ParameterShard::RecordedState state,
      shard_->FreezeForRecords([&](int64_t) -> absl::Status {
        absl::MutexLock lock(&mutex_);
        if (session != session_ || !problem_.empty()) {
          return absl::CancelledError("it was given up");
        }
        job = identity_.job;
        proto::ServerLogRecord record;
        proto::ServerLogHead* const head = record.mutable_head();
        head->set_task(identity_.task);
        head->set_state_id(identity_.state_id);
        head->set_incarnation(identity_.incarnation);
        head->set_first_number(log_number_ + 1);
        received_number_ = log_number_;
        is_sending_ = true;
        is_active_.store(true, std::memory_order_release);
        return session->stream().Send(Message{record.SerializeAsString(), {}});
      }));
  return WriteState(state, job,
                    [&](const proto::ServerLogRecord& record,
                        absl::Span<const absl::Span<const uint8_t>> pieces) {
                      return SendState(session, record, pieces);
                    });
}

bool CopySource::HasRoom() const {
  return unapplied_bytes_ < kUnappliedBytesMax || !is_sending_ || is_stopping_;
}

absl::Status CopySource::SendState(
    const std::shared_ptr<Session>& session,
    const proto::ServerLogRecord& record,
    absl::Span<const absl::Span<const uint8_t>> pieces) {
  const Message message{record.SerializeAsString(), ToTensors(pieces)};
  absl::MutexLock lock(&mutex_);
  // The wait has no deadline. It ends at the latest with the stream, which a
  // keepalive breaks if the holder does not answer.
  mutex_.Await(absl::Condition(this, &CopySource::HasRoom));
  if (session != session_ || !is_sending_ || is_stopping_) {
    return absl::CancelledError("it was given up");
  }
  unapplied_.push_back(SizeOf(message));
  unapplied_bytes_ += SizeOf(message);
  return session->stream().Send(message);
}

absl::Status CopySource::Append(
    proto::ServerLogRecord record,
    absl::Span<const absl::Span<const uint8_t>> pieces) {
  if (!is_active()) return absl::OkStatus();
  // Copied before the lock is taken: answers are not delayed by the copy.
  Message message{"", ToTensors(pieces)};
  absl::MutexLock lock(&mutex_);
  if (phase_ == Phase::kNone || HasEnded()) return absl::OkStatus();
  record.set_number(++log_number_);
  // The copy lacks this record from now on, so the answer waits.
  if (!is_sending_) return absl::OkStatus();
  message.body = record.SerializeAsString();
  unreceived_.push_back(SizeOf(message));
  unreceived_bytes_ += SizeOf(message);
  const absl::Status sent = session_->stream().Send(message);
  if (!sent.ok()) Break(std::string(sent.message()));
  return absl::OkStatus();
}

// ---- Answers.

bool CopySource::MustWait() const {
  switch (phase_) {
    case Phase::kNone:
      return false;
    case Phase::kFilling:
      return is_sending_ && (unreceived_bytes_ > kUnreceivedBytesMax ||
                             unreceived_.size() > kUnreceivedCountMax);
    case Phase::kClosing:
    case Phase::kComplete:
    case Phase::kReplaced:
    case Phase::kEnded:
      return true;
  }
  return false;
}

void CopySource::WhenReceived(Then then) {
  absl::Status status;
#ifndef MUSTER_PLANT_UNCOPIED_ANSWERS
  {
    absl::MutexLock lock(&mutex_);
    if (HasEnded()) {
      status = absl::UnavailableError(problem_);
    } else if (MustWait() && received_number_ < log_number_) {
      waiters_.push_back({log_number_, std::move(then)});
      return;
    }
  }
#endif
  then(status);
}

std::vector<CopySource::Then> CopySource::TakeReleased() {
  std::vector<Then> released;
  while (!waiters_.empty() &&
         (!MustWait() || waiters_.front().log_number <= received_number_)) {
    released.push_back(std::move(waiters_.front().then));
    waiters_.pop_front();
  }
  return released;
}

void CopySource::OnEvent(Session* session, const proto::CopyEvent& event) {
  std::vector<Then> released;
  {
    absl::MutexLock lock(&mutex_);
    if (session != session_.get() || HasEnded()) return;
    while (received_number_ < event.log_number() && !unreceived_.empty()) {
      ++received_number_;
      unreceived_bytes_ -= unreceived_.front();
      unreceived_.pop_front();
    }
    while (applied_count_ < event.snapshot_record_count() &&
           !unapplied_.empty()) {
      ++applied_count_;
      unapplied_bytes_ -= unapplied_.front();
      unapplied_.pop_front();
    }
    if (event.is_complete() && problem_.empty() && phase_ == Phase::kFilling) {
      phase_ = Phase::kClosing;
      closing_number_ = log_number_;
    }
    if (phase_ == Phase::kClosing && received_number_ >= closing_number_) {
      phase_ = Phase::kComplete;
      LOG(INFO) << session_->peer() << " has a complete copy of this server";
    }
    released = TakeReleased();
  }
  CallAll(std::move(released), absl::OkStatus());
}

void CopySource::OnEnd(Session* session, const absl::Status& why) {
  std::vector<Then> released;
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    if (session == session_.get() && absl::IsAborted(why)) {
      phase_ = Phase::kReplaced;
      is_sending_ = false;
      problem_ = absl::StrCat(session_->peer(), " has taken over");
      status = absl::UnavailableError(problem_);
      for (Waiter& waiter : waiters_) {
        released.push_back(std::move(waiter.then));
      }
      waiters_.clear();
    } else if (session == session_.get()) {
      Break(std::string(why.message()));
      released = TakeReleased();
    }
  }
  CallAll(std::move(released), status);
  if (!status.ok()) on_replaced_(status);
  absl::MutexLock lock(&mutex_);
  --session_count_;
}

// ---- Status.

proto::CopyStatus CopySource::status() const {
  proto::CopyStatus status;
  absl::MutexLock lock(&mutex_);
  if (session_ == nullptr) return status;
  status.set_is_complete(phase_ == Phase::kComplete);
  status.set_holder_incarnation(session_->holder().incarnation());
  status.set_problem(problem_);
  return status;
}

int64_t CopySource::log_number() const {
  absl::MutexLock lock(&mutex_);
  return phase_ == Phase::kComplete ? received_number_ : log_number_;
}

void CopySource::SetLogNumber(int64_t log_number) {
  absl::MutexLock lock(&mutex_);
  log_number_ = log_number;
  received_number_ = log_number;
}

}  // namespace muster
