#include "ps/segment_intake.h"

#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/net/rpc/message.h"
#include "proto/parameter_server.pb.h"
#include "proto/rpc.pb.h"
#include "ps/client/client_segment.h"
#include "ps/client/methods.h"
#include "ps/client/segment_transfer.h"

namespace muster {
namespace {

constexpr absl::Duration kFetchTimeout = absl::Seconds(1);

Message Declined(absl::string_view why_not) {
  proto::ShareEvent event;
  event.set_why_not(std::string(why_not));
  return Message{event.SerializeAsString(), {}};
}

}  // namespace

// One client's offer. Lives as long as its stream.
class SegmentIntake::Share final : public StreamObserver,
                                   public std::enable_shared_from_this<Share> {
 public:
  Share(SegmentIntake* intake, std::shared_ptr<Stream> stream)
      : intake_(intake), stream_(std::move(stream)) {}

  void OnMessage(ReceivedMessage message) override {
    absl::StatusOr<proto::ShareRequest> request =
        message.ParseBody<proto::ShareRequest>();
    if (!request.ok() || was_asked_) {
      stream_->Finish(request.ok()
                          ? absl::InvalidArgumentError(
                                "a Share stream takes exactly one request")
                          : request.status());
      return;
    }
    was_asked_ = true;
    if (!intake_->options_.is_enabled) {
      Say(Declined("shared memory is disabled on the server"));
    } else if (!(is_registered_ = intake_->Enter(this))) {
      Say(Declined(
          "the server has reached its limit of segments, or is shutting down"));
    } else {
      intake_->pool_.Schedule(
          [self = shared_from_this(), request = *request,
           caller = message.identity()] { self->Take(request, caller); });
    }
  }
  void OnHalfClose() override { stream_->Finish(absl::OkStatus()); }
  void OnDone(const absl::Status&) override {
    if (is_registered_) intake_->Leave(this);
    absl::MutexLock lock(&mutex_);
    is_done_ = true;
    if (segment_id_ != 0) intake_->Drop(segment_id_);
  }

  const std::shared_ptr<Stream>& stream() const { return stream_; }

 private:
  void Take(const proto::ShareRequest& request,
            const proto::RequestIdentity& caller) ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::StatusOr<uint64_t> proof = intake_->Take(request, caller);
    if (!proof.ok()) {
      Say(Declined(proof.status().message()));
      return;
    }
    {
      absl::MutexLock lock(&mutex_);
      if (is_done_) {
        intake_->Drop(request.segment_id());
        return;
      }
      segment_id_ = request.segment_id();
    }
    proto::ShareEvent event;
    event.set_is_shared(true);
    event.set_proof(*proof);
    Say(Message{event.SerializeAsString(), {}});
  }

  void Say(const Message& message) {
    // A disconnect of the client is handled in OnDone().
    stream_->Send(message).IgnoreError();
  }

  SegmentIntake* const intake_;
  const std::shared_ptr<Stream> stream_;
  bool was_asked_ = false;  // Used by the transport's thread only.
  bool is_registered_ = false;

  absl::Mutex mutex_;
  bool is_done_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t segment_id_ ABSL_GUARDED_BY(mutex_) = 0;
};

SegmentIntake::SegmentIntake(const Options& options)
    : options_(options), pool_("ps_share", 1) {}

SegmentIntake::~SegmentIntake() = default;

void SegmentIntake::AddTo(Service* service) {
  service->AddStream(kShareMethod, [this](std::shared_ptr<Stream> stream) {
    return std::make_shared<Share>(this, std::move(stream));
  });
}

bool SegmentIntake::Enter(Share* share) {
  absl::MutexLock lock(&mutex_);
  if (is_ended_ ||
      shares_.size() >= static_cast<size_t>(options_.segment_count_max)) {
    return false;
  }
  shares_.insert(share);
  return true;
}

void SegmentIntake::Leave(Share* share) {
  absl::MutexLock lock(&mutex_);
  shares_.erase(share);
}

absl::StatusOr<uint64_t> SegmentIntake::Take(
    const proto::ShareRequest& request, const proto::RequestIdentity& caller) {
  if (request.segment_id() == 0) {
    return absl::InvalidArgumentError("the id of a segment must not be 0");
  }
  ASSIGN_OR_RETURN(const FileDescriptor file,
                   FetchFile(request.endpoint(), request.token(),
                             Clock::Real()->Now() + kFetchTimeout));
  ASSIGN_OR_RETURN(std::shared_ptr<Buffer> memory,
                   MapClientSegment(file, options_.segment_bytes_max));
  uint64_t proof = 0;
  std::memcpy(&proof, memory->data(), sizeof(proof));
  absl::MutexLock lock(&mutex_);
  const bool is_new =
      segments_
          .try_emplace(request.segment_id(),
                       Segment{std::move(memory), caller.caller_task(),
                               caller.caller_incarnation()})
          .second;
  if (!is_new) return absl::AlreadyExistsError("the segment's id is in use");
  return proof;
}

void SegmentIntake::Drop(uint64_t segment_id) {
  Segment dropped;  // Unmapped after the lock is released.
  absl::MutexLock lock(&mutex_);
  const auto found = segments_.find(segment_id);
  if (found == segments_.end()) return;
  dropped = std::move(found->second);
  segments_.erase(found);
}

ClientMemory SegmentIntake::Find(uint64_t segment_id,
                                 const proto::RequestIdentity& caller) const {
  absl::ReaderMutexLock lock(&mutex_);
  const auto found = segments_.find(segment_id);
  if (found == segments_.end() ||
      found->second.caller_task != caller.caller_task() ||
      found->second.caller_incarnation != caller.caller_incarnation()) {
    return {};
  }
  const std::shared_ptr<Buffer>& memory = found->second.memory;
  return {memory->data(), memory->size_bytes(), memory};
}

void SegmentIntake::End() {
  std::vector<std::shared_ptr<Stream>> streams;
  {
    absl::MutexLock lock(&mutex_);
    is_ended_ = true;
    for (const Share* share : shares_) streams.push_back(share->stream());
  }
  for (const auto& stream : streams) stream->Finish(absl::OkStatus());
}

bool SegmentIntake::AwaitSegmentCount(int count, absl::Duration timeout) const {
  absl::MutexLock lock(&mutex_);
  const auto is_reached = [this, count]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return static_cast<int>(segments_.size()) == count;
  };
  return Clock::Real()->AwaitWithDeadline(&mutex_, absl::Condition(&is_reached),
                                          Clock::Real()->Now() + timeout);
}

int SegmentIntake::segment_count() const {
  absl::ReaderMutexLock lock(&mutex_);
  return static_cast<int>(segments_.size());
}

}  // namespace muster
