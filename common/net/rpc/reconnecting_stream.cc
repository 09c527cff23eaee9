#include "common/net/rpc/reconnecting_stream.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/core/base/check.h"
#include "common/core/system/clock.h"

namespace muster {
namespace {

// How long the transport may take to report that cancelled streams are done.
constexpr absl::Duration kCancelTimeout = absl::Seconds(30);

}  // namespace

// Observes one session. The ReconnectingStream outlives its observers, because
// Stop() waits until `observer_count_` is 0.
class ReconnectingStream::Observer final : public StreamObserver {
 public:
  Observer(ReconnectingStream* stream, uint64_t session)
      : stream_(stream), session_(session) {}

  void OnMessage(ReceivedMessage message) override {
    stream_->OnMessage(session_, std::move(message));
  }
  void OnDone(const absl::Status& status) override {
    stream_->OnDone(session_, status);
  }

 private:
  ReconnectingStream* const stream_;
  const uint64_t session_;
};

ReconnectingStream::ReconnectingStream(const Options& options,
                                       std::unique_ptr<Channel> channel,
                                       Listener* listener, TickLoop* loop)
    : options_(options),
      channel_(std::move(channel)),
      listener_(listener),
      loop_(loop),
      clock_(loop->clock()),
      silence_(loop->interval()) {}

ReconnectingStream::~ReconnectingStream() { Stop(); }

void ReconnectingStream::Stop() {
  std::vector<std::shared_ptr<Stream>> streams;
  {
    absl::MutexLock lock(&mutex_);
    is_stopping_ = true;
    is_open_ = false;
    CancelSoon(std::move(stream_));
    CancelSoon(std::move(replaced_stream_));
    streams = std::exchange(streams_to_cancel_, {});
  }
  for (const auto& stream : streams) stream->Cancel();
  absl::MutexLock lock(&mutex_);
  MUSTER_CHECK(clock_->AwaitWithDeadline(
      &mutex_, absl::Condition(this, &ReconnectingStream::IsIdle),
      clock_->Now() + kCancelTimeout));
}

std::string ReconnectingStream::Reason(const absl::Status& why) const {
  if (why.ok()) return "it closed the stream";
  absl::string_view reason = why.message();
  absl::ConsumePrefix(&reason, absl::StrCat(channel_->peer(), ": "));
  return std::string(reason);
}

absl::Time ReconnectingStream::Advance(const TickLoop::Turn& turn) {
  std::vector<std::shared_ptr<Stream>> streams_to_cancel;
  absl::Time next_turn = absl::InfiniteFuture();
  uint64_t session = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (is_stopping_) return absl::InfiniteFuture();
    if (turn.is_tick) silence_.OnTick();
    streams_to_cancel = std::exchange(streams_to_cancel_, {});
    const bool is_dial_wanted = !is_open_ && may_dial_;
    if (is_dial_wanted && turn.now < next_dial_) {
      next_turn = next_dial_;
    } else if (is_dial_wanted) {
      is_open_ = true;
      is_dialling_ = true;
      session = ++session_;
      ++observer_count_;
    }
  }
  for (const auto& stream : streams_to_cancel) stream->Cancel();
  if (session != 0) Dial(session);
  return next_turn;
}

void ReconnectingStream::Dial(uint64_t session) {
  const Message first_message = listener_->OnDial(options_.peer, session);
  const std::shared_ptr<Stream> stream = channel_->OpenStream(
      options_.method, std::make_shared<Observer>(this, session));
  bool is_wanted = false;
  {
    absl::MutexLock lock(&mutex_);
    if (IsCurrent(session)) {
      is_wanted = end_reason_.ok();
      stream_ = stream;
    } else if (!is_stopping_ && replaced_stream_ == nullptr) {
      // The session was renewed or has ended while it was dialled. If it was
      // renewed, the peer must receive its first message, since it may be the
      // peer's only session. If it has ended, sending is harmless.
      is_wanted = true;
      replaced_stream_ = stream;
    }
  }
  if (is_wanted) {
    stream->Send(first_message).IgnoreError();  // OnDone() gets the error.
  } else {
    stream->Cancel();
  }
  absl::MutexLock lock(&mutex_);
  is_dialling_ = false;
}

void ReconnectingStream::OnMessage(uint64_t session, ReceivedMessage message) {
  {
    absl::MutexLock lock(&mutex_);
    if (!IsCurrent(session) || !end_reason_.ok()) return;
    silence_.OnReceived();
  }
  listener_->OnMessage(options_.peer, session, std::move(message));
}

void ReconnectingStream::OnDone(uint64_t session, const absl::Status& status) {
  bool is_current = false;
  absl::Status why = status;
  {
    absl::MutexLock lock(&mutex_);
    is_current = IsCurrent(session);
    if (is_current) {
      stream_ = nullptr;
      if (!end_reason_.ok()) why = end_reason_;
    }
  }
  if (is_current) listener_->OnEnd(options_.peer, session, why);
  absl::MutexLock lock(&mutex_);
  if (IsCurrent(session)) {
    CancelSoon(std::move(replaced_stream_));
    if (is_established_) {
      silence_.OnReceived();
      Close(options_.redial_delay);
    } else {
      Close(BackoffDelay(options_.backoff, ++failed_dial_count_,
                         options_.jitter_seed ^ session_));
    }
  }
  --observer_count_;
}

void ReconnectingStream::Close(absl::Duration delay) {
  is_open_ = false;
  stream_ = nullptr;
  is_established_ = false;
  end_reason_ = absl::OkStatus();
  next_dial_ = clock_->Now() + delay;
  loop_->Wake();
}

void ReconnectingStream::CancelSoon(std::shared_ptr<Stream> stream) {
  if (stream == nullptr) return;
  streams_to_cancel_.push_back(std::move(stream));
  loop_->Wake();
}

absl::Status ReconnectingStream::Send(uint64_t session,
                                      const Message& message) {
  std::shared_ptr<Stream> stream;
  {
    absl::MutexLock lock(&mutex_);
    if (IsCurrent(session) && is_established_) stream = stream_;
  }
  if (stream != nullptr) return stream->Send(message);
  return absl::UnavailableError(absl::StrCat("no session ", session, " with ",
                                             channel_->peer(), " is open"));
}

void ReconnectingStream::MarkEstablished(uint64_t session) {
  absl::MutexLock lock(&mutex_);
  if (!IsCurrent(session)) return;
  is_established_ = true;
  failed_dial_count_ = 0;
  CancelSoon(std::move(replaced_stream_));
}

bool ReconnectingStream::is_established() const {
  absl::MutexLock lock(&mutex_);
  return is_established_;
}

bool ReconnectingStream::IsSilentFor(absl::Duration timeout) const {
  absl::MutexLock lock(&mutex_);
  return silence_.IsLongerThan(timeout);
}

void ReconnectingStream::End(uint64_t session, const absl::Status& why) {
  MUSTER_CHECK(!why.ok());
  absl::MutexLock lock(&mutex_);
  if (!IsCurrent(session) || !end_reason_.ok()) return;
  end_reason_ = why;
  CancelSoon(stream_);
}

void ReconnectingStream::Renew(uint64_t session) {
  absl::MutexLock lock(&mutex_);
  if (!IsCurrent(session)) return;
  CancelSoon(std::exchange(replaced_stream_, stream_));
  Close(absl::ZeroDuration());
}

void ReconnectingStream::StopDialling() {
  absl::MutexLock lock(&mutex_);
  may_dial_ = false;
}

void ReconnectingStream::Finish() {
  std::shared_ptr<Stream> stream;
  {
    absl::MutexLock lock(&mutex_);
    may_dial_ = false;
    stream = stream_;
  }
  if (stream != nullptr) stream->Finish(absl::OkStatus());
}

bool ReconnectingStream::AwaitClosed(absl::Time deadline) const {
  absl::MutexLock lock(&mutex_);
  return clock_->AwaitWithDeadline(
      &mutex_, absl::Condition(this, &ReconnectingStream::IsClosed), deadline);
}

}  // namespace muster
