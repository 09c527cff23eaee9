#include "common/net/collectives/message/rpc_lane.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/net/collectives/message/frame.h"
#include "common/net/rpc/message.h"

namespace muster {
namespace {

// A message on the stream is a note of one of these kinds. The note of a frame
// contains its header; the payload is a tensor of the same message.
enum class Note : char {
  kHello = 'H',    // Opens the lane: generation and rank.
  kWelcome = 'W',  // Answers a hello with a random number.
  kConfirm = 'O',  // Returns that number: the opener has received the answer.
  kCredit = 'C',   // The number of bytes that the receiver has taken.
  kFrame = 'F',
};

// The bytes that may be in transit or unread at the peer. The window holds
// several segments, so that data keeps arriving while a segment is reduced.
constexpr int64_t kWindowBytes = int64_t{16} << 20;
// Credit is returned in larger pieces than it is used, which saves messages.
constexpr int64_t kCreditBytesMin = kWindowBytes / 8;
constexpr int64_t kFrameCostBytes = 4096;
// Limit of the lanes that were opened and not yet accepted.
constexpr size_t kWaitingLaneCountMax = 4096;

// The part of the window that a frame takes. Headers count, so that many small
// frames cannot accumulate either.
int64_t CostOf(const FrameHeader& header) {
  return kFrameCostBytes + static_cast<int64_t>(header.payload_bytes);
}

std::string MakeNote(Note note, const void* data, size_t size_bytes) {
  std::string body(1, static_cast<char>(note));
  body.append(static_cast<const char*>(data), size_bytes);
  return body;
}

template <typename T>
std::optional<T> ReadNote(absl::string_view body) {
  if (body.size() != 1 + sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, body.data() + 1, sizeof(T));
  return value;
}

struct RpcHello {
  uint64_t generation = 0;
  int64_t rank = 0;
};

struct ReceivedFrame {
  FrameHeader header;
  ReceivedTensor payload;
};

// State shared by a lane and the observer of its stream.
class RpcLaneState : public std::enable_shared_from_this<RpcLaneState> {
 public:
  void SetStream(std::shared_ptr<Stream> stream) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    stream_ = std::move(stream);
  }
  void SetWaker(LaneWaker* waker) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    waker_ = waker;
  }

  // Handles a message from the stream.
  void OnNote(ReceivedMessage message) ABSL_LOCKS_EXCLUDED(mutex_);
  // The peer sends nothing more. `status` is OK if it has left the group
  // normally.
  void OnEnd(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Status Send(const Message& message) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<bool> SendFrame(OutgoingFrame& frame)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the next frame, if one has arrived.
  absl::StatusOr<std::optional<ReceivedFrame>> TakeFrame()
      ABSL_LOCKS_EXCLUDED(mutex_);
  void GiveCredit(const FrameHeader& header) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status abort_status() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return abort_status_;
  }
  bool HoldsPayloads() const { return held_payload_count_.load() > 0; }

  // Waits until the peer has answered or the stream has ended. Returns the
  // number in the answer.
  absl::StatusOr<uint64_t> AwaitWelcome(absl::Time deadline)
      ABSL_LOCKS_EXCLUDED(mutex_);

  void Close() ABSL_LOCKS_EXCLUDED(mutex_);
  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void AddFrame(const ReceivedMessage& message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Wake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (waker_ != nullptr) waker_->Wake();
  }
  Tensor PayloadOf(const OutgoingFrame& frame);
  void ReleasePayload() ABSL_LOCKS_EXCLUDED(mutex_);

  std::atomic<int> held_payload_count_{0};

  mutable absl::Mutex mutex_;
  std::shared_ptr<Stream> stream_ ABSL_GUARDED_BY(mutex_);
  LaneWaker* waker_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::deque<ReceivedFrame> inbox_ ABSL_GUARDED_BY(mutex_);
  int64_t inbox_cost_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t window_left_bytes_ ABSL_GUARDED_BY(mutex_) = kWindowBytes;
  int64_t credit_owed_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<uint64_t> welcome_number_ ABSL_GUARDED_BY(mutex_);
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;  // Closed by this end.
  // Why no more frames arrive; OK while some may.
  absl::Status end_status_ ABSL_GUARDED_BY(mutex_);
  absl::Status abort_status_ ABSL_GUARDED_BY(mutex_);
};

void RpcLaneState::OnNote(ReceivedMessage message) {
  absl::MutexLock lock(&mutex_);
  const absl::string_view body = message.body();
  const Note note = body.empty() ? Note::kHello : static_cast<Note>(body[0]);
  if (note == Note::kWelcome && ReadNote<uint64_t>(body).has_value()) {
    welcome_number_ = ReadNote<uint64_t>(body);
  } else if (note == Note::kCredit && ReadNote<int64_t>(body).has_value()) {
    window_left_bytes_ += *ReadNote<int64_t>(body);
  } else if (note == Note::kFrame) {
    AddFrame(message);
  } else {
    End(absl::InvalidArgumentError("the message is not a lane message"));
  }
  Wake();
}

void RpcLaneState::AddFrame(const ReceivedMessage& message) {
  const auto encoded = ReadNote<EncodedFrameHeader>(message.body());
  if (!encoded.has_value() || message.tensors().size() != 1) {
    End(absl::InvalidArgumentError("the message is not a frame"));
    return;
  }
  absl::StatusOr<FrameHeader> header = DecodeFrameHeader(*encoded);
  const ReceivedTensor& payload = message.tensors()[0];
  if (!header.ok() || payload.type().dtype != DType::kUint8 ||
      header->payload_bytes != payload.size_bytes()) {
    End(absl::InvalidArgumentError("the message is not a frame"));
    return;
  }
  inbox_cost_bytes_ += CostOf(*header);
  if (header->kind == FrameKind::kAbort) {
    std::string text;
    for (const MessageSlice& piece : payload.pieces()) {
      text.append(reinterpret_cast<const char*>(piece.data), piece.size_bytes);
    }
    abort_status_ = DecodeAbort(text);
  } else if (inbox_cost_bytes_ > 2 * kWindowBytes) {
    End(absl::InvalidArgumentError("it sends more than it was allowed to"));
    return;
  }
  inbox_.push_back({*std::move(header), payload});
}

void RpcLaneState::End(const absl::Status& status) {
  if (end_status_.ok()) end_status_ = status;
}

void RpcLaneState::OnEnd(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  if (status.ok()) {
    End(absl::UnavailableError("it has left the group"));
  } else if (welcome_number_.has_value()) {
    // An open lane is lost, whatever the reason, so the code is kUnavailable.
    End(absl::UnavailableError(status.message()));
  } else {
    End(status);
  }
  Wake();
}

absl::Status RpcLaneState::Send(const Message& message) {
  std::shared_ptr<Stream> stream;
  {
    absl::MutexLock lock(&mutex_);
    if (is_closed_) return absl::UnavailableError("the lane is closed");
    stream = stream_;
  }
  return stream->Send(message);
}

Tensor RpcLaneState::PayloadOf(const OutgoingFrame& frame) {
  const size_t size_bytes = frame.header.payload_bytes;
  const Shape shape({static_cast<int64_t>(size_bytes)});
  if (frame.payload_owner == nullptr) {
    return Tensor::FromSpan<uint8_t>(shape, {frame.payload, size_bytes});
  }
  held_payload_count_.fetch_add(1);
  // The transport may release the payload later than the lane is destroyed, so
  // the closure keeps the payload and this state alive.
  return Tensor(
      DType::kUint8, shape,
      Buffer::Wrap(const_cast<uint8_t*>(frame.payload), size_bytes,
                   [owner = frame.payload_owner, self = shared_from_this()] {
                     self->ReleasePayload();
                   }));
}

void RpcLaneState::ReleasePayload() {
  if (held_payload_count_.fetch_sub(1) > 1) return;
  absl::MutexLock lock(&mutex_);
  Wake();
}

absl::StatusOr<bool> RpcLaneState::SendFrame(OutgoingFrame& frame) {
  // Only data frames count against the window: an abort is sent even if the
  // window is full.
  const int64_t cost_bytes = CostOf(frame.header);
  {
    absl::MutexLock lock(&mutex_);
    if (!end_status_.ok()) return end_status_;
    if (frame.header.kind == FrameKind::kData) {
      // One frame of any size may always be in transit.
      if (window_left_bytes_ < kWindowBytes &&
          window_left_bytes_ < cost_bytes) {
        return false;
      }
      window_left_bytes_ -= cost_bytes;
    }
  }
  const EncodedFrameHeader header = EncodeFrameHeader(frame.header);
  const absl::Status status =
      Send({MakeNote(Note::kFrame, header.data(), header.size()),
            {PayloadOf(frame)}});
  if (!status.ok()) return absl::UnavailableError(status.message());
  return true;
}

absl::StatusOr<std::optional<ReceivedFrame>> RpcLaneState::TakeFrame() {
  absl::MutexLock lock(&mutex_);
  if (inbox_.empty()) {
    if (!end_status_.ok()) return end_status_;
    return std::nullopt;
  }
  std::optional<ReceivedFrame> frame = std::move(inbox_.front());
  inbox_.pop_front();
  inbox_cost_bytes_ -= CostOf(frame->header);
  return frame;
}

void RpcLaneState::GiveCredit(const FrameHeader& header) {
  if (header.kind != FrameKind::kData) return;
  int64_t credit_bytes = 0;
  {
    absl::MutexLock lock(&mutex_);
    credit_owed_bytes_ += CostOf(header);
    if (credit_owed_bytes_ < kCreditBytesMin) return;
    credit_bytes = std::exchange(credit_owed_bytes_, 0);
  }
  // If the stream has ended, the next read reports it.
  Send({MakeNote(Note::kCredit, &credit_bytes, sizeof(credit_bytes)), {}})
      .IgnoreError();
}

absl::StatusOr<uint64_t> RpcLaneState::AwaitWelcome(absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  auto is_decided = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return welcome_number_.has_value() || !end_status_.ok();
  };
  if (!Clock::Real()->AwaitWithDeadline(&mutex_, absl::Condition(&is_decided),
                                        deadline)) {
    return absl::DeadlineExceededError("no answer to the opening of a lane");
  }
  if (!welcome_number_.has_value()) return end_status_;
  return *welcome_number_;
}

void RpcLaneState::Close() {
  std::shared_ptr<Stream> stream;
  {
    absl::MutexLock lock(&mutex_);
    if (is_closed_) return;
    is_closed_ = true;
    waker_ = nullptr;
    stream = stream_;
  }
  if (stream != nullptr) stream->Finish(absl::OkStatus());
}

void RpcLaneState::Cancel() {
  std::shared_ptr<Stream> stream;
  {
    absl::MutexLock lock(&mutex_);
    is_closed_ = true;
    waker_ = nullptr;
    stream = stream_;
  }
  if (stream != nullptr) stream->Cancel();
}

class RpcLane final : public Lane {
 public:
  explicit RpcLane(std::shared_ptr<RpcLaneState> state)
      : state_(std::move(state)) {}
  ~RpcLane() override { Close(); }

  std::string transport() const override { return "gRPC"; }
  bool is_same_host() const override { return false; }
  void SetWaker(LaneWaker* waker) override { state_->SetWaker(waker); }
  int fd() const override { return -1; }

  absl::StatusOr<bool> Send(OutgoingFrame& frame) override {
    return state_->SendFrame(frame);
  }
  bool HoldsPayloads() const override { return state_->HoldsPayloads(); }

  absl::StatusOr<const FrameHeader*> NextFrame() override {
    if (!next_.has_value()) {
      absl::StatusOr<std::optional<ReceivedFrame>> frame = state_->TakeFrame();
      if (!frame.ok()) return frame.status();
      next_ = *std::move(frame);
    }
    return next_.has_value() ? &next_->header : nullptr;
  }

  absl::StatusOr<bool> ReceivePayload(PayloadSink& sink) override {
    for (const MessageSlice& piece : next_->payload.pieces()) {
      sink.Take(piece.data, piece.size_bytes);
    }
    const FrameHeader header = next_->header;
    next_.reset();
    state_->GiveCredit(header);
    return true;
  }

  absl::Status FindAbort() override { return state_->abort_status(); }
  void Close() override { state_->Close(); }

 private:
  const std::shared_ptr<RpcLaneState> state_;
  std::optional<ReceivedFrame> next_;
};

// Observes the stream of the rank that opened the lane.
class OpenerObserver final : public StreamObserver {
 public:
  explicit OpenerObserver(std::shared_ptr<RpcLaneState> state)
      : state_(std::move(state)) {}
  void OnMessage(ReceivedMessage message) override {
    state_->OnNote(std::move(message));
  }
  void OnDone(const absl::Status& status) override { state_->OnEnd(status); }

 private:
  const std::shared_ptr<RpcLaneState> state_;
};

}  // namespace

// The lanes that were opened and not yet accepted.
class RpcLaneAcceptor::State {
 public:
  void StartGeneration(uint64_t generation) ABSL_LOCKS_EXCLUDED(mutex_) {
    std::vector<std::shared_ptr<RpcLaneState>> late;
    {
      absl::MutexLock lock(&mutex_);
      generation_ = std::max(generation_, generation);
      while (!waiting_.empty() && waiting_.begin()->first.first < generation_) {
        late.push_back(std::move(waiting_.begin()->second));
        waiting_.erase(waiting_.begin());
      }
    }
    for (const auto& lane : late) lane->Close();
  }

  // Returns OK if a lane of this generation can still be added, else
  // kFailedPrecondition.
  absl::Status Check(uint64_t generation) const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return CheckLocked(generation);
  }

  absl::Status Add(const RpcHello& hello, std::shared_ptr<RpcLaneState> lane)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    std::shared_ptr<RpcLaneState> replaced;
    {
      absl::MutexLock lock(&mutex_);
      RETURN_IF_ERROR(CheckLocked(hello.generation));
      if (waiting_.size() >= kWaitingLaneCountMax) {
        return absl::ResourceExhaustedError(
            absl::StrCat(waiting_.size(), " lanes wait to be accepted"));
      }
      replaced = std::exchange(waiting_[{hello.generation, hello.rank}],
                               std::move(lane));
    }
    if (replaced != nullptr) replaced->Close();
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<Lane>> Take(int rank, uint64_t generation,
                                             absl::Time deadline)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    const std::pair<uint64_t, int64_t> key(generation, rank);
    auto is_decided = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return generation_ > generation || waiting_.count(key) > 0;
    };
    if (!Clock::Real()->AwaitWithDeadline(&mutex_, absl::Condition(&is_decided),
                                          deadline)) {
      return absl::DeadlineExceededError(absl::StrCat(
          "rank ", rank, " has opened no lane of generation ", generation));
    }
    RETURN_IF_ERROR(CheckLocked(generation));
    auto found = waiting_.find(key);
    auto lane = std::make_unique<RpcLane>(std::move(found->second));
    waiting_.erase(found);
    return lane;
  }

 private:
  absl::Status CheckLocked(uint64_t generation) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    if (generation >= generation_) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "generation ", generation, " is over; this task is at ", generation_));
  }

  mutable absl::Mutex mutex_;
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  // Keyed by generation and rank.
  std::map<std::pair<uint64_t, int64_t>, std::shared_ptr<RpcLaneState>> waiting_
      ABSL_GUARDED_BY(mutex_);
};

namespace {

// Observes the stream of the rank that accepts the lane. A network may deliver
// the opening of a lane more than once. Only a stream whose opener has received
// the answer becomes a lane: the sender of a copy cannot confirm the number
// that was sent to the copy.
class AcceptorObserver final : public StreamObserver {
 public:
  AcceptorObserver(std::shared_ptr<RpcLaneAcceptor::State> acceptor,
                   std::shared_ptr<Stream> stream)
      : acceptor_(std::move(acceptor)), stream_(std::move(stream)) {
    lane_->SetStream(stream_);
  }

  void OnMessage(ReceivedMessage message) override {
    if (is_open_) {
      lane_->OnNote(std::move(message));
      return;
    }
    const absl::Status status = hello_.has_value()
                                    ? TakeConfirmation(message.body())
                                    : TakeHello(message.body());
    if (!status.ok()) stream_->Finish(status);
  }
  // The opener has left. No one receives frames at the other end.
  void OnHalfClose() override {
    lane_->OnEnd(absl::OkStatus());
    stream_->Finish(absl::OkStatus());
  }
  void OnDone(const absl::Status& status) override {
    lane_->OnEnd(status.ok() ? status
                             : absl::UnavailableError(status.message()));
  }

 private:
  absl::Status TakeHello(absl::string_view body) {
    hello_ = ReadNote<RpcHello>(body);
    if (!hello_.has_value() || body[0] != static_cast<char>(Note::kHello)) {
      return absl::InvalidArgumentError("a lane begins with a hello");
    }
    RETURN_IF_ERROR(acceptor_->Check(hello_->generation));
    return stream_->Send(
        {MakeNote(Note::kWelcome, &welcome_number_, sizeof(welcome_number_)),
         {}});
  }

  absl::Status TakeConfirmation(absl::string_view body) {
    if (body !=
        MakeNote(Note::kConfirm, &welcome_number_, sizeof(welcome_number_))) {
      return absl::AlreadyExistsError(
          "this is a copy of the opening of another lane");
    }
    is_open_ = true;
    return acceptor_->Add(*hello_, lane_);
  }

  const std::shared_ptr<RpcLaneAcceptor::State> acceptor_;
  const std::shared_ptr<Stream> stream_;
  const std::shared_ptr<RpcLaneState> lane_ = std::make_shared<RpcLaneState>();
  const uint64_t welcome_number_ = RandomIdentity();
  std::optional<RpcHello> hello_;
  bool is_open_ = false;
};

absl::StatusOr<std::unique_ptr<Lane>> OpenOnce(Channel* channel, int rank,
                                               uint64_t generation,
                                               absl::Time deadline) {
  auto state = std::make_shared<RpcLaneState>();
  state->SetStream(channel->OpenStream(
      kOpenLaneMethod, std::make_shared<OpenerObserver>(state)));
  const RpcHello hello{generation, rank};
  // If the hello cannot be sent, the status of the stream says why.
  state->Send({MakeNote(Note::kHello, &hello, sizeof(hello)), {}})
      .IgnoreError();
  const absl::StatusOr<uint64_t> number = state->AwaitWelcome(deadline);
  if (!number.ok()) {
    state->Cancel();
    return number.status();
  }
  RETURN_IF_ERROR(
      state->Send({MakeNote(Note::kConfirm, &*number, sizeof(*number)), {}}));
  return std::make_unique<RpcLane>(std::move(state));
}

}  // namespace

RpcLaneAcceptor::RpcLaneAcceptor() : state_(std::make_shared<State>()) {}

RpcLaneAcceptor::~RpcLaneAcceptor() = default;

void RpcLaneAcceptor::AddTo(Service* service) {
  service->AddStream(
      kOpenLaneMethod, [state = state_](std::shared_ptr<Stream> stream) {
        return std::make_shared<AcceptorObserver>(state, std::move(stream));
      });
}

void RpcLaneAcceptor::StartGeneration(uint64_t generation) {
  state_->StartGeneration(generation);
}

absl::StatusOr<std::unique_ptr<Lane>> RpcLaneAcceptor::Accept(
    int rank, uint64_t generation, absl::Time deadline) {
  return state_->Take(rank, generation, deadline);
}

absl::StatusOr<std::unique_ptr<Lane>> OpenRpcLane(Channel* channel, int rank,
                                                  uint64_t generation,
                                                  absl::Time deadline) {
  for (;;) {
    absl::StatusOr<std::unique_ptr<Lane>> lane =
        OpenOnce(channel, rank, generation, deadline);
    if (lane.ok()) return lane;
    // A copy of the opening arrived first, and the server accepted one of the
    // two. Try again.
    if (absl::IsAlreadyExists(lane.status()) &&
        Clock::Real()->Now() < deadline) {
      continue;
    }
    return absl::Status(lane.status().code(),
                        absl::StrCat("no lane to ", channel->peer(), ": ",
                                     lane.status().message()));
  }
}

}  // namespace muster
