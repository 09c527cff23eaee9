#include "ps/client/segment_offer.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/base/random.h"
#include "common/core/system/clock.h"
#include "common/core/system/log.h"
#include "common/net/rpc/message.h"
#include "common/net/rpc/service.h"
#include "proto/parameter_server.pb.h"
#include "ps/client/methods.h"
#include "ps/client/segment_transfer.h"

namespace muster {
namespace {

// A healthy server answers within a millisecond.
constexpr absl::Duration kAnswerTimeout = absl::Seconds(2);
constexpr size_t kNamedServersMax = 8;

// "ps 0 (h:1), ps 1 (h:2) and 3 more".
std::string Names(const std::vector<std::string>& names) {
  const size_t named = std::min(names.size(), kNamedServersMax);
  std::string text = absl::StrJoin(names.begin(), names.begin() + named, ", ");
  if (named < names.size()) {
    absl::StrAppend(&text, " and ", names.size() - named, " more");
  }
  return text;
}

}  // namespace

// Receives the response of one server to the offer.
class SegmentOffer::Taker final : public StreamObserver {
 public:
  // Calls `on_answer` once, when the server has accepted or refused. Sets
  // `segment_id` while the server has the segment.
  Taker(uint64_t id, uint64_t proof,
        std::shared_ptr<std::atomic<uint64_t>> segment_id,
        std::function<void()> on_answer)
      : offered_id_(id),
        proof_(proof),
        on_heard_(std::move(on_answer)),
        segment_id_(std::move(segment_id)) {}

  void Offer(Channel* channel, const FileServer& file_server,
             const std::shared_ptr<Taker>& self) {
    proto::ShareRequest request;
    request.set_segment_id(offered_id_);
    request.set_endpoint(file_server.endpoint());
    request.set_token(file_server.token());
    stream_ = channel->OpenStream(kShareMethod, self);
    // If the stream is broken already, OnDone() is called.
    stream_->Send(Message{request.SerializeAsString(), {}}).IgnoreError();
  }

  // Ends the stream and blocks until OnDone() has returned.
  void Stop() {
    stream_->Cancel();
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&is_done_));
  }

  // Returns the reason why the server refused the segment, or "" if it
  // accepted.
  std::string AwaitAnswer(absl::Time deadline) {
    absl::MutexLock lock(&mutex_);
    if (!Clock::Real()->AwaitWithDeadline(
            &mutex_, absl::Condition(&has_answer_), deadline)) {
      return "it did not answer in time";
    }
    return why_not_;
  }

  void OnMessage(ReceivedMessage message) override {
    const absl::StatusOr<proto::ShareEvent> event =
        message.ParseBody<proto::ShareEvent>();
    if (!event.ok()) {
      Hear(std::string(event.status().message()));
    } else if (!event->is_shared()) {
      Hear(event->why_not());
    } else if (event->proof() != proof_) {
      Hear("it has mapped other memory");
    } else {
      segment_id_->store(offered_id_, std::memory_order_release);
      was_taken_.store(true);
      Hear("");
    }
  }
  void OnDone(const absl::Status& status) override {
    segment_id_->store(0, std::memory_order_release);
    Hear(absl::StrCat("it ended the share: ", status.message()));
    absl::MutexLock lock(&mutex_);
    is_done_ = true;
  }

  const std::shared_ptr<std::atomic<uint64_t>>& segment_id() const {
    return segment_id_;
  }
  bool was_taken() const { return was_taken_.load(); }

 private:
  // Keeps the first result; later ones are ignored.
  void Hear(std::string why_not) {
    {
      absl::MutexLock lock(&mutex_);
      if (has_answer_) return;
      has_answer_ = true;
      why_not_ = std::move(why_not);
    }
    on_heard_();
  }

  const uint64_t offered_id_;
  const uint64_t proof_;
  const std::function<void()> on_heard_;
  const std::shared_ptr<std::atomic<uint64_t>> segment_id_;
  std::shared_ptr<Stream> stream_;
  std::atomic<bool> was_taken_{false};

  absl::Mutex mutex_;
  bool has_answer_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_done_ ABSL_GUARDED_BY(mutex_) = false;
  std::string why_not_ ABSL_GUARDED_BY(mutex_);
};

std::unique_ptr<SegmentOffer> SegmentOffer::Make(
    const std::vector<Channel*>& channels, size_t segment_bytes) {
  if (segment_bytes <= SegmentPool::kHeaderBytes) {
    LOG(INFO) << "tensors go over gRPC: shared memory is switched off";
    return nullptr;
  }
  absl::StatusOr<std::unique_ptr<ClientSegment>> segment =
      ClientSegment::Create(segment_bytes);
  if (!segment.ok()) {
    LOG(INFO) << "tensors go over gRPC: " << segment.status().message();
    return nullptr;
  }
  std::unique_ptr<SegmentOffer> offer(new SegmentOffer(*std::move(segment)));
  offer->AskAll(channels);
  for (size_t server = 0; server < channels.size(); ++server) {
    if (offer->IsTaken(static_cast<int>(server))) return offer;
  }
  return nullptr;
}

SegmentOffer::SegmentOffer(std::unique_ptr<ClientSegment> segment)
    : segment_(std::move(segment)),
      pool_(std::make_shared<SegmentPool>(
          segment_->memory(), [this](size_t offset, size_t size_bytes) {
            return segment_->TakePages(offset, size_bytes);
          })) {}

SegmentOffer::~SegmentOffer() {
  std::vector<std::shared_ptr<Taker>> takers;
  {
    absl::MutexLock lock(&mutex_);
    takers.swap(takers_);
  }
  for (const auto& taker : takers) taker->Stop();
}

std::shared_ptr<SegmentOffer::Taker> SegmentOffer::TakerOf(int server) const {
  absl::MutexLock lock(&mutex_);
  return server < static_cast<int>(takers_.size()) ? takers_[server] : nullptr;
}

void SegmentOffer::Renew(int server, Channel* channel) {
  const std::shared_ptr<Taker> before = TakerOf(server);
  if (before == nullptr || !before->was_taken()) return;
  // Its stream ended with the process. After it has ended it clears the number.
  before->Stop();
  absl::StatusOr<std::unique_ptr<FileServer>> opened =
      FileServer::Open(&segment_->file());
  if (!opened.ok()) return;
  const std::shared_ptr<FileServer> file_server = *std::move(opened);
  const auto taker =
      std::make_shared<Taker>(RandomIdentity(), proof_, before->segment_id(),
                              [file_server] { file_server->Stop(); });
  {
    absl::MutexLock lock(&mutex_);
    takers_[server] = taker;
  }
  taker->Offer(channel, *file_server, taker);
  file_server->Serve(Clock::Real()->Now() + kAnswerTimeout);
}

void SegmentOffer::AskAll(const std::vector<Channel*>& channels) {
  absl::StatusOr<std::unique_ptr<FileServer>> opened =
      FileServer::Open(&segment_->file());
  if (!opened.ok()) {
    LOG(INFO) << "tensors go over gRPC: " << opened.status().message();
    return;
  }
  const std::shared_ptr<FileServer> file_server = *std::move(opened);
  proof_ = RandomIdentity();
  std::memcpy(segment_->memory()->data(), &proof_, sizeof(proof_));
  const auto unanswered_count =
      std::make_shared<std::atomic<size_t>>(channels.size());
  for (Channel* channel : channels) {
    const auto taker = std::make_shared<Taker>(
        RandomIdentity(), proof_, std::make_shared<std::atomic<uint64_t>>(0),
        [file_server, unanswered_count] {
          if (unanswered_count->fetch_sub(1) == 1) file_server->Stop();
        });
    {
      absl::MutexLock lock(&mutex_);
      takers_.push_back(taker);
    }
    taker->Offer(channel, *file_server, taker);
  }
  file_server->Serve(Clock::Real()->Now() + kAnswerTimeout);
  LogTakers(channels);
}

void SegmentOffer::LogTakers(const std::vector<Channel*>& channels) const {
  std::vector<std::string> taken;
  std::map<std::string, std::vector<std::string>> refused;  // By reason.
  for (size_t server = 0; server < channels.size(); ++server) {
    const std::string why_not =
        TakerOf(static_cast<int>(server))->AwaitAnswer(Clock::Real()->Now());
    std::vector<std::string>& names =
        why_not.empty() ? taken : refused[why_not];
    names.push_back(channels[server]->peer());
  }
  std::string line;
  if (!taken.empty()) {
    line = absl::StrCat("tensors go through shared memory to ", Names(taken));
  }
  for (const auto& [why_not, names] : refused) {
    absl::StrAppend(&line, line.empty() ? "tensors go " : "; ", "over gRPC to ",
                    Names(names), " (", why_not, ")");
  }
  LOG(INFO) << line;
}

bool SegmentOffer::IsTaken(int server) const {
  const std::shared_ptr<Taker> taker = TakerOf(server);
  return taker != nullptr &&
         taker->segment_id()->load(std::memory_order_acquire) != 0;
}

std::shared_ptr<std::atomic<uint64_t>> SegmentOffer::segment_id(
    int server) const {
  return TakerOf(server)->segment_id();
}

}  // namespace muster
