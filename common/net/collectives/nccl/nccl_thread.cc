#include "common/net/collectives/nccl/nccl_thread.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/core/system/log.h"

namespace muster {
namespace {

// How often a running collective is polled.
constexpr absl::Duration kPollPeriod = absl::Microseconds(50);
constexpr absl::Duration kConnectPollPeriod = absl::Milliseconds(1);

// At least the number of collectives that usually run at once, so that a step
// creates no events even if this thread is late to see that earlier collectives
// have finished.
constexpr size_t kEventCount = 16;
// Limit for a clean end, which waits for the other ranks to end, too.
constexpr absl::Duration kFinalizeTimeout = absl::Seconds(2);
// How late the thread may detect an expired deadline.
constexpr absl::Duration kGrace = absl::Seconds(5);

// A call of NcclThread::Run(). Shared, because its caller may time out before
// the thread has served it.
struct Request {
  std::string function;
  NcclThread::Launch launch;
  const Event* ready = nullptr;
  Event* done = nullptr;
  absl::Time deadline;
  uint64_t number = 0;  // Set by Submit().
};

// A collective that has been enqueued and has not finished.
struct UnderWay {
  std::unique_ptr<Event> done;
  std::string function;
  absl::Time start_time;
  absl::Time deadline;
};

absl::StatusCode CodeOf(nccl::Result result) {
  return result == nccl::kSystemError || result == nccl::kRemoteError
             ? absl::StatusCode::kUnavailable
             : absl::StatusCode::kInternal;
}

void SetWord(const Buffer& word) {
  std::atomic_ref<int32_t>(*reinterpret_cast<int32_t*>(word.data())).store(1);
}

}  // namespace

class NcclThread::State {
 public:
  explicit State(const Options& options) : options_(options) {}

  absl::Status Prepare() {
    ASSIGN_OR_RETURN(stream_, options_.device->CreateStream());
    return absl::OkStatus();
  }

  // The main function of the thread.
  void Run(absl::Time connect_deadline);

  // Called by other threads.
  absl::Status AwaitConnected(absl::Time deadline);
  absl::Status Submit(const std::shared_ptr<Request>& request);
  absl::Status AwaitIdle();
  // Ends the thread. Returns false if it has not ended in time.
  bool End();
  absl::Status status() const {
    const absl::MutexLock lock(&mutex_);
    return status_;
  }
  // Only the first call has an effect.
  void SetStatus(const absl::Status& status) {
    const absl::MutexLock lock(&mutex_);
    if (!status_.ok()) return;
    status_ = status;
    is_abort_due_ = true;
  }

  void UseEndWord(std::shared_ptr<Buffer> word);

  DeviceStream* stream() { return stream_.get(); }
  void Keep(std::shared_ptr<void> memory) { kept_ = std::move(memory); }
  const Options& options() const { return options_; }

 private:
  // Called by the thread only.
  absl::Status Connect(absl::Time deadline);
  std::shared_ptr<Request> AwaitRequest();
  absl::Status Serve(const Request& request);
  absl::Status Poll();
  absl::Status AwaitNotInProgress(absl::string_view function,
                                  nccl::Result result, absl::Duration period,
                                  absl::Time deadline);
  absl::Status ToStatus(absl::string_view function, nccl::Result result);
  absl::StatusOr<std::unique_ptr<Event>> TakeEvent();
  void AbortComm();
  void SetEndWords();
  void EndComm();

  const Options options_;
  std::shared_ptr<void> kept_;
  std::unique_ptr<DeviceStream> stream_;  // Destroyed before `kept_`, which it
                                          // uses.

  // Used by the thread only.
  nccl::Comm* comm_ = nullptr;
  std::deque<UnderWay> under_way_;
  std::vector<std::unique_ptr<Event>> free_events_;

  mutable absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<Request> request_ ABSL_GUARDED_BY(mutex_);
  uint64_t submitted_number_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t served_number_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time last_deadline_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  bool is_abort_due_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_connected_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_idle_ ABSL_GUARDED_BY(mutex_) = true;
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
  // The words of UseEndWord().
  std::vector<std::weak_ptr<Buffer>> end_words_ ABSL_GUARDED_BY(mutex_);
  bool has_aborted_ ABSL_GUARDED_BY(mutex_) = false;
};

void NcclThread::State::Run(absl::Time connect_deadline) {
  const absl::Status connected = Connect(connect_deadline);
  if (!connected.ok()) SetStatus(connected);
  {
    const absl::MutexLock lock(&mutex_);
    is_connected_ = true;
  }
  while (true) {
    const std::shared_ptr<Request> request = AwaitRequest();
    absl::Status status = this->status();
    if (status.ok()) status = request == nullptr ? Poll() : Serve(*request);
    if (!status.ok()) {
      SetStatus(status);
      AbortComm();
    }
    const absl::MutexLock lock(&mutex_);
    if (request != nullptr) served_number_ = request->number;
    is_idle_ = under_way_.empty();
    if (is_ending_) break;
  }
  EndComm();
  const absl::MutexLock lock(&mutex_);
  has_ended_ = true;
}

std::shared_ptr<Request> NcclThread::State::AwaitRequest() {
  const auto has_news = [this] {
    mutex_.AssertReaderHeld();
    return request_ != nullptr || is_abort_due_ || is_ending_;
  };
  const absl::MutexLock lock(&mutex_);
  Clock::Real()->AwaitWithDeadline(&mutex_, absl::Condition(&has_news),
                                   under_way_.empty()
                                       ? absl::InfiniteFuture()
                                       : Clock::Real()->Now() + kPollPeriod);
  return std::exchange(request_, nullptr);
}

absl::Status NcclThread::State::Connect(absl::Time deadline) {
  RETURN_IF_ERROR(options_.device->context().MakeCurrent());
  nccl::Config config;
  if (options_.ctas_max > 0) config.ctas_max = options_.ctas_max;
  const nccl::Result result = options_.api->ncclCommInitRankConfig(
      &comm_, options_.size, options_.id, options_.rank, &config);
  RETURN_IF_ERROR(AwaitNotInProgress("ncclCommInitRankConfig", result,
                                     kConnectPollPeriod, deadline));
  while (free_events_.size() < kEventCount) {
    ASSIGN_OR_RETURN(free_events_.emplace_back(),
                     options_.device->CreateEvent());
  }
  return absl::OkStatus();
}

absl::Status NcclThread::State::Serve(const Request& request) {
  ASSIGN_OR_RETURN(std::unique_ptr<Event> done, TakeEvent());
  if (request.ready != nullptr) RETURN_IF_ERROR(stream_->Wait(*request.ready));
  const absl::Time start_time = Clock::Real()->Now();
  RETURN_IF_ERROR(AwaitNotInProgress(request.function,
                                     request.launch(comm_, stream_->handle()),
                                     absl::ZeroDuration(), request.deadline));
  // If the caller has timed out, it may have destroyed its event.
  RETURN_IF_ERROR(status());
  if (request.done != nullptr) RETURN_IF_ERROR(stream_->Record(request.done));
  RETURN_IF_ERROR(stream_->Record(done.get()));
  under_way_.push_back(
      {std::move(done), request.function, start_time, request.deadline});
  return absl::OkStatus();
}

absl::Status NcclThread::State::Poll() {
  if (under_way_.empty()) return absl::OkStatus();
  // Checks for an error first. A collective that fails never finishes by
  // itself, so one that has finished is correct.
  nccl::Result error = nccl::kSuccess;
  const nccl::Result asked = options_.api->ncclCommGetAsyncError(comm_, &error);
  if (asked != nccl::kSuccess) return ToStatus("ncclCommGetAsyncError", asked);
  if (error != nccl::kSuccess && error != nccl::kInProgress) {
    return ToStatus(under_way_.front().function, error);
  }
  while (!under_way_.empty()) {
    UnderWay& first = under_way_.front();
    ASSIGN_OR_RETURN(const bool is_done, first.done->IsReached());
    if (!is_done) break;
    free_events_.push_back(std::move(first.done));
    under_way_.pop_front();
  }
  if (under_way_.empty()) return absl::OkStatus();
  const UnderWay& first = under_way_.front();
  const absl::Time now = Clock::Real()->Now();
  if (now < first.deadline) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat(
      first.function, " has not finished on ", options_.device->name(),
      " after ", absl::FormatDuration(now - first.start_time)));
}

absl::Status NcclThread::State::AwaitNotInProgress(absl::string_view function,
                                                   nccl::Result result,
                                                   absl::Duration period,
                                                   absl::Time deadline) {
  const absl::Time start_time = Clock::Real()->Now();
  const auto is_ended = [this] {
    mutex_.AssertReaderHeld();
    return !status_.ok();
  };
  while (result == nccl::kInProgress) {
    const nccl::Result asked =
        options_.api->ncclCommGetAsyncError(comm_, &result);
    if (asked != nccl::kSuccess) {
      return ToStatus("ncclCommGetAsyncError", asked);
    }
    if (result != nccl::kInProgress) break;
    const absl::Time now = Clock::Real()->Now();
    if (now >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat(function, " is still in progress after ",
                       absl::FormatDuration(now - start_time)));
    }
    const absl::MutexLock lock(&mutex_);
    if (Clock::Real()->AwaitWithDeadline(&mutex_, absl::Condition(&is_ended),
                                         now + period)) {
      return status_;
    }
  }
  return result == nccl::kSuccess ? absl::OkStatus()
                                  : ToStatus(function, result);
}

absl::Status NcclThread::State::ToStatus(absl::string_view function,
                                         nccl::Result result) {
  const char* const last = options_.api->ncclGetLastError(comm_);
  const absl::string_view words = last == nullptr ? "" : last;
  return absl::Status(
      CodeOf(result),
      absl::StrCat(function, " on ", options_.device->name(), ": NCCL says ",
                   options_.api->ncclGetErrorString(result), " (", result, ")",
                   words.empty() ? "" : ": ", words));
}

absl::StatusOr<std::unique_ptr<Event>> NcclThread::State::TakeEvent() {
  if (free_events_.empty()) return options_.device->CreateEvent();
  std::unique_ptr<Event> event = std::move(free_events_.back());
  free_events_.pop_back();
  return event;
}

void NcclThread::State::AbortComm() {
  {
    const absl::MutexLock lock(&mutex_);
    is_abort_due_ = false;
  }
  under_way_.clear();
  nccl::Comm* const comm = std::exchange(comm_, nullptr);
  if (comm == nullptr) return;
  SetEndWords();
  const nccl::Result result = options_.api->ncclCommAbort(comm);
  if (result != nccl::kSuccess) {
    LOG(WARNING) << ToStatus("ncclCommAbort", result).message();
  }
}

void NcclThread::State::SetEndWords() {
  const absl::MutexLock lock(&mutex_);
  has_aborted_ = true;
  for (const std::weak_ptr<Buffer>& weak : end_words_) {
    if (const std::shared_ptr<Buffer> word = weak.lock()) SetWord(*word);
  }
}

void NcclThread::State::UseEndWord(std::shared_ptr<Buffer> word) {
  const absl::MutexLock lock(&mutex_);
  if (has_aborted_) SetWord(*word);
  std::erase_if(end_words_, [](const std::weak_ptr<Buffer>& known) {
    return known.expired();
  });
  end_words_.push_back(std::move(word));
}

void NcclThread::State::EndComm() {
  if (comm_ == nullptr) return;
  const bool is_clean =
      under_way_.empty() &&
      AwaitNotInProgress(
          "ncclCommFinalize", options_.api->ncclCommFinalize(comm_),
          kConnectPollPeriod, Clock::Real()->Now() + kFinalizeTimeout)
          .ok();
  if (!is_clean) return AbortComm();
  (void)options_.api->ncclCommDestroy(std::exchange(comm_, nullptr));
}

absl::Status NcclThread::State::AwaitConnected(absl::Time deadline) {
  const auto is_over = [this] {
    mutex_.AssertReaderHeld();
    return is_connected_ || !status_.ok();
  };
  const absl::MutexLock lock(&mutex_);
  if (!Clock::Real()->AwaitWithDeadline(&mutex_, absl::Condition(&is_over),
                                        deadline + kGrace)) {
    return absl::DeadlineExceededError(absl::StrCat(
        "ncclCommInitRankConfig does not return on ", options_.device->name()));
  }
  return status_;
}

absl::Status NcclThread::State::Submit(
    const std::shared_ptr<Request>& request) {
  const auto is_over = [this, &request] {
    mutex_.AssertReaderHeld();
    return served_number_ == request->number || !status_.ok();
  };
  const absl::MutexLock lock(&mutex_);
  if (!status_.ok()) return status_;
  request->number = ++submitted_number_;
  request_ = request;
  is_idle_ = false;
  last_deadline_ = std::max(last_deadline_, request->deadline);
  if (!Clock::Real()->AwaitWithDeadline(&mutex_, absl::Condition(&is_over),
                                        request->deadline + kGrace)) {
    status_ = absl::DeadlineExceededError(absl::StrCat(
        request->function, " does not return on ", options_.device->name()));
    is_abort_due_ = true;
  }
  return status_;
}

absl::Status NcclThread::State::AwaitIdle() {
  const auto is_over = [this] {
    mutex_.AssertReaderHeld();
    return is_idle_ || !status_.ok();
  };
  const absl::MutexLock lock(&mutex_);
  if (!Clock::Real()->AwaitWithDeadline(&mutex_, absl::Condition(&is_over),
                                        last_deadline_ + kGrace)) {
    status_ = absl::DeadlineExceededError(absl::StrCat(
        "the thread of NCCL on ", options_.device->name(), " does not answer"));
    is_abort_due_ = true;
  }
  return status_;
}

bool NcclThread::State::End() {
  const absl::MutexLock lock(&mutex_);
  is_ending_ = true;
  return Clock::Real()->AwaitWithDeadline(
      &mutex_, absl::Condition(&has_ended_),
      Clock::Real()->Now() + options_.end_timeout);
}

absl::StatusOr<std::unique_ptr<NcclThread>> NcclThread::Connect(
    const Options& options, absl::Time deadline) {
  auto state = std::make_shared<State>(options);
  RETURN_IF_ERROR(state->Prepare());
  auto thread = absl::WrapUnique(new NcclThread(state));
  thread->thread_ = std::thread([state, deadline] { state->Run(deadline); });
  RETURN_IF_ERROR(state->AwaitConnected(deadline));
  return thread;
}

NcclThread::NcclThread(std::shared_ptr<State> state)
    : state_(std::move(state)) {}

NcclThread::~NcclThread() {
  if (state_->End()) {
    thread_.join();
    return;
  }
  LOG(ERROR) << "a communicator of NCCL on " << state_->options().device->name()
             << " has not ended after "
             << absl::FormatDuration(state_->options().end_timeout)
             << "; it keeps its thread and its memory until the process ends";
  thread_.detach();
}

absl::Status NcclThread::Run(absl::string_view function, Launch launch,
                             const Event* ready, Event* done,
                             absl::Time deadline) {
  auto request = std::make_shared<Request>();
  request->function = std::string(function);
  request->launch = std::move(launch);
  request->ready = ready;
  request->done = done;
  request->deadline = deadline;
  return state_->Submit(request);
}

absl::Status NcclThread::Await() { return state_->AwaitIdle(); }

absl::Status NcclThread::state() const { return state_->status(); }

void NcclThread::Abort(const absl::Status& status) {
  state_->SetStatus(status);
}

void NcclThread::UseEndWord(std::shared_ptr<Buffer> word) {
  state_->UseEndWord(std::move(word));
}

DeviceStream* NcclThread::stream() { return state_->stream(); }

void NcclThread::Keep(std::shared_ptr<void> memory) {
  state_->Keep(std::move(memory));
}

}  // namespace muster
