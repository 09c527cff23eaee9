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
// Each stream that is opened is a *session*. Sessions are numbered from 1.
// Events of an earlier session never reach the listener. A session is
// established once MarkEstablished() is called. If a session ends before that,
// the next one is dialled after a back-off that grows.
//
// The owner runs any number of these streams from one TickLoop, by calling
// Advance() in every turn.
//
// Thread-safe. No lock is held while the listener or the transport is called.
// Every method but Advance(), AwaitClosed() and Stop() takes only locks that
// this class owns, so the caller may hold others.
class ReconnectingStream {
 public:
  struct Options {
    std::string method;
    // Passed to the listener, which may serve many streams.
    int peer = 0;
    BackoffOptions backoff;
    // Time between the end of an established session and the next dial.
    absl::Duration redial_delay = absl::ZeroDuration();
    uint64_t jitter_seed = 0;
  };

  // Called on the loop's thread and on the transport's threads. Must not block
  // and must not call Stop(). Events of one session arrive one at a time.
  class Listener {
   public:
    virtual ~Listener() = default;
    // Called when a session begins. Returns its first message. The peer must
    // not send before it has received this message.
    virtual Message OnDial(int peer, uint64_t session) = 0;
    virtual void OnMessage(int peer, uint64_t session,
                           ReceivedMessage message) = 0;
    // The session's last event. `why` is the argument of End(), the status with
    // which the peer finished, or the error of the connection. Unless Renew()
    // is called, the next session begins after OnEnd() has returned.
    virtual void OnEnd(int peer, uint64_t session, const absl::Status& why) = 0;
  };

  // `listener` and `loop` are borrowed. Dials in the first Advance().
  ReconnectingStream(const Options& options, std::unique_ptr<Channel> channel,
                     Listener* listener, TickLoop* loop);
  ~ReconnectingStream();  // Stops.

  ReconnectingStream(const ReconnectingStream&) = delete;
  ReconnectingStream& operator=(const ReconnectingStream&) = delete;

  Channel& channel() const { return *channel_; }

  // Converts the argument of OnEnd() to a text without the peer's name in
  // front, for messages that name the peer elsewhere. Returns "it closed the
  // stream" for OK.
  std::string Reason(const absl::Status& why) const;

  // Dials if a dial is due, counts a tick of silence, and cancels streams that
  // are no longer used. Returns the time when it must be called again; it must
  // also be called at each tick and after the loop was woken. Called by one
  // thread at a time.
  absl::Time Advance(const TickLoop::Turn& turn) ABSL_LOCKS_EXCLUDED(mutex_);

  // Queues a message of an established session. Messages of one session arrive
  // in the order sent, after its first message.
  //   kUnavailable        the session has ended or is not established; OnEnd()
  //                       gets the reason
  //   kResourceExhausted  too many messages are queued already
  absl::Status Send(uint64_t session, const Message& message)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Called by the owner when the peer has accepted the session. Resets the
  // back-off, and ends the session that Renew() replaced.
  void MarkEstablished(uint64_t session) ABSL_LOCKS_EXCLUDED(mutex_);
  // True if the current session is established.
  bool is_established() const ABSL_LOCKS_EXCLUDED(mutex_);

  // True if the peer has been silent for longer than `timeout`, measured in
  // ticks. Silence begins with the peer's last message, or with the end of an
  // established session if that was later.
  bool IsSilentFor(absl::Duration timeout) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends the session, unless it has already ended. No more messages are
  // delivered, and OnEnd() follows with `why`, which must not be OK.
  void End(uint64_t session, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Replaces the session with a new one at once. The old session stays open
  // until the new one is established, so that the peer does not consider this
  // process lost. The listener gets no further events of the old session.
  void Renew(uint64_t session) ABSL_LOCKS_EXCLUDED(mutex_);

  // Opens no more sessions; the current one continues.
  void StopDialling() ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls StopDialling() and half-closes the current session. The peer may end
  // the session once it has read everything.
  void Finish() ABSL_LOCKS_EXCLUDED(mutex_);

  // Blocks until no session is open. Returns false if the deadline passes
  // before.
  bool AwaitClosed(absl::Time deadline) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Cancels all streams and blocks until no callback runs and none can follow.
  // Does not call OnEnd() for the current session.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Observer;

  // True if events of the session reach the listener.
  bool IsCurrent(uint64_t session) const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
#ifdef MUSTER_PLANT_STALE_REPORTS
    return is_open_ && !is_stopping_;
#endif
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
  // Closes the current session. The next one is dialled after `delay`.
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
  // True from the begin of a session until its OnEnd() has returned.
  bool is_open_ ABSL_GUARDED_BY(mutex_) = false;
  // Null until the transport has opened the stream, and after the stream ended.
  std::shared_ptr<Stream> stream_ ABSL_GUARDED_BY(mutex_);
  bool is_established_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_reason_ ABSL_GUARDED_BY(mutex_);  // Not OK after End().
  // The stream of the session that Renew() has replaced.
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
