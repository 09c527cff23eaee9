#include "ps/copy_receiver.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/core/system/log.h"
#include "common/core/tensor/tensor.h"
#include "proto/rpc.pb.h"
#include "ps/log/log_file.h"

namespace muster {
namespace {

// Beyond this, the source has to wait until changes are applied.
constexpr int64_t kWaitingBytesMax = int64_t{256} << 20;
constexpr absl::Duration kApplyTimeout = absl::Minutes(1);

}  // namespace

class CopyReceiver::Observer final : public StreamObserver {
 public:
  Observer(CopyReceiver* receiver, std::shared_ptr<Stream> stream)
      : receiver_(receiver), stream_(std::move(stream)) {}

  void OnMessage(ReceivedMessage message) override {
    const absl::Status taken = receiver_->Take(stream_, message);
    if (!taken.ok()) stream_->Finish(taken);
  }
  void OnHalfClose() override { stream_->Finish(absl::OkStatus()); }
  void OnDone(const absl::Status&) override {
    absl::MutexLock lock(&receiver_->mutex_);
    if (receiver_->stream_ == stream_) receiver_->stream_ = nullptr;
  }

 private:
  CopyReceiver* const receiver_;
  const std::shared_ptr<Stream> stream_;
};

CopyReceiver::CopyReceiver(AdmissionCheck* admission_check,
                           ParameterShard* shard)
    : admission_check_(admission_check),
      shard_(shard),
      thread_([this] { RunLoop(); }) {}

CopyReceiver::~CopyReceiver() {
  {
    absl::MutexLock lock(&mutex_);
    is_stopping_ = true;
  }
  thread_.join();
}

std::shared_ptr<StreamObserver> CopyReceiver::Open(
    std::shared_ptr<Stream> stream) {
  return std::make_shared<Observer>(this, std::move(stream));
}

// ---- Receiving.

absl::Status CopyReceiver::Take(const std::shared_ptr<Stream>& stream,
                                const ReceivedMessage& message) {
  Record record;
  ASSIGN_OR_RETURN(record.message, message.ParseBody<proto::ServerLogRecord>());
  if (record.message.has_head()) {
    return Begin(stream, message.identity(), record.message.head());
  }
  if (message.tensors().size() > 1 ||
      (!message.tensors().empty() &&
       message.tensors()[0].type().dtype != DType::kUint8)) {
    return absl::InvalidArgumentError(
        "a record of a copy has other tensors than its bytes");
  }
  record.size_bytes = static_cast<int64_t>(message.body().size());
  if (!message.tensors().empty()) {
    ASSIGN_OR_RETURN(record.bytes, message.tensors()[0].ToTensor());
    record.size_bytes += static_cast<int64_t>(record.bytes.size_bytes());
  }
  absl::MutexLock lock(&mutex_);
#ifdef MUSTER_PLANT_KEPT_SOURCE
  if (stream == stream_ && !is_holder_) {
    ++log_number_;
    Acknowledge();
  }
#endif
  // Another source, or TakeOver(), has ended this stream.
  if (stream != stream_ || !is_holder_) return absl::OkStatus();
  return Queue(std::move(record));
}

absl::Status CopyReceiver::Begin(const std::shared_ptr<Stream>& stream,
                                 const proto::RequestIdentity& source,
                                 const proto::ServerLogHead& head) {
  if (!is_holder() && !admission_check_->job_id().empty()) {
    return absl::FailedPreconditionError(
        "this process serves a job and cannot hold a copy");
  }
  RETURN_IF_ERROR(admission_check_->AdoptJob(source));
  {
    absl::MutexLock lock(&mutex_);
    if (stream_ != nullptr && stream_ != stream) stream_->Cancel();
    Forget();
    is_holder_ = true;
    // The thread may be applying a record of an earlier copy.
    if (!Clock::Real()->AwaitWithDeadline(
            &mutex_, absl::Condition(this, &CopyReceiver::IsIdle),
            Clock::Real()->Now() + kApplyTimeout)) {
      return absl::UnavailableError("an earlier copy is still being applied");
    }
  }
  shard_->Clear();
  absl::MutexLock lock(&mutex_);
  stream_ = stream;
  head_ = head;
  log_number_ = head.first_number() - 1;
  LOG(INFO) << "receiving a copy of " << head.task() << ", incarnation "
            << IncarnationString(head.incarnation());
  return absl::OkStatus();
}

absl::Status CopyReceiver::Queue(Record record) {
  if (!broken_.ok()) return broken_;
  if (record.message.number() == 0) {
    if (has_whole_state_) {
      return absl::DataLossError(
          "got a part of the state after its last record");
    }
    state_records_.push_back(std::move(record));
    return absl::OkStatus();
  }
  if (record.message.number() != log_number_ + 1) {
    return absl::DataLossError(absl::StrCat("got record ",
                                            record.message.number(),
                                            "; expected ", log_number_ + 1));
  }
  ++log_number_;
  waiting_bytes_ += record.size_bytes;
  changes_.push_back(std::move(record));
  Acknowledge();
  return absl::OkStatus();
}

void CopyReceiver::Acknowledge() {
  owes_event_ = waiting_bytes_ > kWaitingBytesMax;
  if (owes_event_ || stream_ == nullptr) return;
  proto::CopyEvent event;
  event.set_log_number(log_number_);
  event.set_snapshot_record_count(applied_state_record_count_);
  event.set_is_complete(has_whole_state_);
  const absl::Status sent =
      stream_->Send(Message{event.SerializeAsString(), {}});
  if (!sent.ok()) stream_->Finish(sent);
}

// ---- Applying.

bool CopyReceiver::HasWork() const {
  return is_stopping_ ||
         (is_holder_ && broken_.ok() &&
          (!state_records_.empty() || (has_whole_state_ && !changes_.empty())));
}

bool CopyReceiver::IsApplied() const {
  return !broken_.ok() || !is_holder_ || (changes_.empty() && !is_applying_);
}

void CopyReceiver::RunLoop() {
  while (true) {
    Record record;
    {
      absl::MutexLock lock(&mutex_);
      // The wait has no deadline. It ends at the latest with this object.
      mutex_.Await(absl::Condition(this, &CopyReceiver::HasWork));
      if (is_stopping_) return;
      std::deque<Record>& records =
          state_records_.empty() ? changes_ : state_records_;
      record = std::move(records.front());
      records.pop_front();
      is_applying_ = true;
    }
    const absl::Status applied = Apply(record);
    absl::MutexLock lock(&mutex_);
    is_applying_ = false;
    // The copy may have been given up meanwhile.
    if (!is_holder_) continue;
    if (!applied.ok()) {
      GiveUp(applied);
    } else if (record.message.number() == 0) {
      ++applied_state_record_count_;
      has_whole_state_ = has_whole_state_ || record.message.has_snapshot_end();
      Acknowledge();
    } else {
      waiting_bytes_ -= record.size_bytes;
      if (owes_event_) Acknowledge();
    }
  }
}

absl::Status CopyReceiver::Apply(const Record& record) {
  ServerLogEntry entry;
  entry.message = record.message;
  if (record.bytes.size_bytes() > 0) {
    entry.bytes = {static_cast<const uint8_t*>(record.bytes.raw_data()),
                   record.bytes.size_bytes()};
    entry.owner = std::make_shared<Tensor>(record.bytes);
  }
  return shard_->Replay(entry);
}

void CopyReceiver::GiveUp(const absl::Status& why) {
  LOG(ERROR) << "the copy of " << head_.task()
             << " cannot be continued: " << why.message();
  broken_ = why;
  if (stream_ != nullptr) stream_->Finish(why);
}

// ---- The end.

absl::StatusOr<CopyReceiver::Taken> CopyReceiver::TakeOver(
    uint64_t state_id, int64_t log_number_min) {
  absl::MutexLock lock(&mutex_);
  if (!is_holder_ || !has_whole_state_ || head_.state_id() != state_id) {
    return absl::FailedPreconditionError(
        absl::StrCat("this process holds no complete copy of the state ",
                     IncarnationString(state_id)));
  }
  RETURN_IF_ERROR(broken_);
  // From here on the source gets no acknowledgement.
#ifndef MUSTER_PLANT_KEPT_SOURCE
  if (stream_ != nullptr) {
    stream_->Finish(absl::AbortedError("another process has taken over"));
  }
  stream_ = nullptr;
#endif
  if (log_number_ < log_number_min) {
    return absl::DataLossError(
        absl::StrCat("the copy ends with record ", log_number_,
                     ", and the server had reported record ", log_number_min));
  }
  if (!Clock::Real()->AwaitWithDeadline(
          &mutex_, absl::Condition(this, &CopyReceiver::IsApplied),
          Clock::Real()->Now() + kApplyTimeout)) {
    return absl::DeadlineExceededError(
        absl::StrCat(waiting_bytes_, " bytes of changes were not applied in ",
                     absl::FormatDuration(kApplyTimeout)));
  }
  RETURN_IF_ERROR(broken_);
  if (!is_holder_) return absl::CancelledError("the copy was given up");
  is_holder_ = false;
  return Taken{head_.state_id(), log_number_};
}

void CopyReceiver::Forget() {
  broken_ = absl::OkStatus();
  head_.Clear();
  state_records_.clear();
  changes_.clear();
  has_whole_state_ = false;
  applied_state_record_count_ = 0;
  log_number_ = 0;
  waiting_bytes_ = 0;
  owes_event_ = false;
}

void CopyReceiver::Reset() {
  {
    absl::MutexLock lock(&mutex_);
    if (!is_holder_) return;
    if (stream_ != nullptr) stream_->Cancel();
    stream_ = nullptr;
    Forget();
    is_holder_ = false;
    // The wait ends with the record that is being applied.
    mutex_.Await(absl::Condition(this, &CopyReceiver::IsIdle));
  }
  shard_->Clear();
}

bool CopyReceiver::is_holder() const {
  absl::MutexLock lock(&mutex_);
  return is_holder_;
}

std::string CopyReceiver::source() const {
  absl::MutexLock lock(&mutex_);
  return head_.task();
}

bool CopyReceiver::is_complete() const {
  absl::MutexLock lock(&mutex_);
  return is_holder_ && has_whole_state_ && broken_.ok();
}

int64_t CopyReceiver::log_number() const {
  absl::MutexLock lock(&mutex_);
  return log_number_;
}

uint64_t CopyReceiver::state_id() const {
  absl::MutexLock lock(&mutex_);
  return head_.state_id();
}

}  // namespace muster
