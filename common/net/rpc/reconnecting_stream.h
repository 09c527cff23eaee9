#ifndef COMMON_NET_RPC_RECONNECTING_STREAM_H_
#define COMMON_NET_RPC_RECONNECTING_STREAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/base/backoff.h"
#include "common/net/rpc/channel.h"
#include "common/net/rpc/message.h"
#include "common/net/rpc/service.h"
#include "common/net/rpc/silence_counter.h"
#include "common/net/rpc/tick_loop.h"

namespace muster {

// A stream to one peer that is opened again whenever it ends.
//
// Each stream that is opened is a *session*, with a number that rises from 1.
// Events of an earlier session never reach the listener. A session counts as
// established once the listener says so; when one ends before, the next waits
// for a back-off that grows.
//
// The owner drives any number of these from one TickLoop, by calling Advance()
// in every turn.
//
// Thread-safe. No lock is held while the listener or the transport is called.
// Every method but Advance(), AwaitClosed() and Stop() takes only a lock of its
// own, so the caller may hold others.
class ReconnectingStream {
 public:
  struct Options {
    std::string method;
    // Passed to the listener, which may have many streams.
    int peer = 0;
    BackoffOptions backoff;
    // Between the end of an established session and the next dial.
    absl::Duration redial_delay = absl::ZeroDuration();
    uint64_t jitter_seed = 0;
  };

  // Called on the loop's thread and on the transport's; must not wait, and must
  // not call Stop(). Events of one session come one at a time.
  class Listener {
   public:
    virtual ~Listener() = default;
    // A session begins. Returns its first message; the peer must speak only
    // after it.
    virtual Message OnDial(int peer, uint64_t session) = 0;
    virtual void OnMessage(int peer, uint64_t session,
                           ReceivedMessage message) = 0;
    // The session's last event: what End() was given, the status that the peer
    // finished with, or why there is no connection. Unless Renew() is called,
    // the next session begins after this has returned.
    virtual void OnEnd(int peer, uint64_t session, const absl::Status& why) = 0;
  };

  // `listener` and `loop` are borrowed. Dials in the first Advance().
  ReconnectingStream(const Options& options, std::unique_ptr<Channel> channel,
                     Listener* listener, TickLoop* loop);
  ~ReconnectingStream();  // Stops.

  ReconnectingStream(const ReconnectingStream&) = delete;
  ReconnectingStream& operator=(const ReconnectingStream&) = delete;

  Channel& channel() const { return *channel_; }

  // The argument of OnEnd(), for a message that names the peer itself: without
  // the peer's name at its front. "it closed the stream" for OK.
  std::string Reason(const absl::Status& why) const;

  // Dials when it is time to, counts a tick of silence, and cancels what is to
  // be cancelled. Returns when it must be called again, besides at ticks and
  // after the loop was woken. One thread at a time.
  absl::Time Advance(const TickLoop::Turn& turn) ABSL_LOCKS_EXCLUDED(mutex_);

  // Queues a message of an established session. Messages of one session arrive
  // in the order sent, after the first one.
  //   kUnavailable        the session has ended or is not established; OnEnd()
  //                       tells why it ended
  //   kResourceExhausted  too many messages wait already
  absl::Status Send(uint64_t session, const Message& message)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The peer has accepted the session. Resets the back-off, and ends the
  // session that Renew() replaced.
  void MarkEstablished(uint64_t session) ABSL_LOCKS_EXCLUDED(mutex_);
  // Of the current session.
  bool is_established() const ABSL_LOCKS_EXCLUDED(mutex_);

  // True if the peer has been silent for longer than `timeout`: since its last
  // message, or since the end of an established session if that was later.
  // Measured in ticks.
  bool IsSilentFor(absl::Duration timeout) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends the session, unless it has ended: no more messages are delivered, and
  // OnEnd() follows with `why`, which is not OK.
  void End(uint64_t session, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Replaces the session by another one at once. The peer keeps this one until
  // the other is established, so that it does not take this process for lost.
  // No event of this session follows.
  void Renew(uint64_t session) ABSL_LOCKS_EXCLUDED(mutex_);

  // Opens no more sessions; the current one continues.
  void StopDialling() ABSL_LOCKS_EXCLUDED(mutex_);

  // StopDialling(), and half-closes the current session: the peer may end it
  // when it has read everything.
  void Finish() ABSL_LOCKS_EXCLUDED(mutex_);

  // Blocks until no session is open. Returns false at the deadline.
  bool AwaitClosed(absl::Time deadline) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Cancels everything and blocks until no callback runs or can come. OnEnd()
  // is not called for the session that this ends.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Observer;

  // True if events of the session reach the listener.
  bool IsCurrent(uint64_t session) const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return is_open_ && session == session_ && !is_stopping_;
  }
  bool IsIdle() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return observer_count_ == 0 && !is_dialling_;
  }
  bool IsClosed() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !is_open_; }
  void Dial(uint64_t session) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnMessage(uint64_t session, ReceivedMessage message)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void OnDone(uint64_t session, const absl::Status& status)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The current session is over; the next one is dialled after `delay`.
  void Close(absl::Duration delay) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CancelSoon(std::shared_ptr<Stream> stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const std::unique_ptr<Channel> channel_;
  Listener* const listener_;
  TickLoop* const loop_;
  Clock* const clock_;

  mutable absl::Mutex mutex_;
  uint64_t session_ ABSL_GUARDED_BY(mutex_) = 0;
  // The session has begun, and its OnEnd() has not returned.
  bool is_open_ ABSL_GUARDED_BY(mutex_) = false;
  // Null until the transport has given it, and after it has ended.
  std::shared_ptr<Stream> stream_ ABSL_GUARDED_BY(mutex_);
  bool is_established_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_reason_ ABSL_GUARDED_BY(mutex_);  // Not OK after End().
  // Of the session that Renew() has replaced.
  std::shared_ptr<Stream> replaced_stream_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Stream>> streams_to_cancel_
      ABSL_GUARDED_BY(mutex_);
  int failed_dial_count_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time next_dial_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  SilenceCounter silence_ ABSL_GUARDED_BY(mutex_);
  bool may_dial_ ABSL_GUARDED_BY(mutex_) = true;
  bool is_dialling_ ABSL_GUARDED_BY(mutex_) = false;
  int observer_count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster

#endif  // COMMON_NET_RPC_RECONNECTING_STREAM_H_
