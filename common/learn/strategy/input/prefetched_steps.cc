#include "common/learn/strategy/input/prefetched_steps.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/core/system/clock.h"

namespace muster {
namespace {

class PrefetchedSteps final : public DistributedIterator {
 public:
  PrefetchedSteps(std::unique_ptr<DistributedIterator> input,
                  const PrefetchOptions& options)
      : input_(std::move(input)),
        options_(options),
        producer_([this] { Produce(); }) {}

  ~PrefetchedSteps() override {
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
    }
    producer_.join();
  }

  absl::StatusOr<bool> Next(std::vector<ReplicaBatch>* batches) override {
    // Slices released before the producer wakes up let it reuse their memory.
    for (ReplicaBatch& batch : *batches) batch.element.clear();
    for (absl::Duration waited; !AwaitStep();) {
      waited += options_.slow_input_warning;
      options_.on_slow_input(waited, taken_count_);
    }
    absl::MutexLock lock(&mutex_);
    Step& step = ready_.front();
    if (!step.more.ok()) return step.more;
    if (!*step.more) {
      *batches = step.batches;  // Reused by the next call.
      return false;
    }
    std::swap(*batches, step.batches);
    free_.push_back(std::move(step.batches));
    ready_.pop_front();
    ++taken_count_;
    return true;
  }

 private:
  // The result of the input. Its end or an error stays at the front.
  struct Step {
    absl::StatusOr<bool> more = false;
    std::vector<ReplicaBatch> batches;
  };

  bool HasStep() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !ready_.empty();
  }
  bool StoppingOrRoom() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopping_ ||
           ready_.size() < static_cast<size_t>(options_.step_count);
  }

  // Returns false if it has taken too long.
  bool AwaitStep() ABSL_LOCKS_EXCLUDED(mutex_) {
    Clock* const clock = Clock::Real();
    absl::MutexLock lock(&mutex_);
    return clock->AwaitWithDeadline(
        &mutex_, absl::Condition(this, &PrefetchedSteps::HasStep),
        clock->Now() + options_.slow_input_warning);
  }

  void Produce() ABSL_LOCKS_EXCLUDED(mutex_) {
    while (true) {
      Step step;
      {
        absl::MutexLock lock(&mutex_);
        mutex_.Await(absl::Condition(this, &PrefetchedSteps::StoppingOrRoom));
        if (stopping_) return;
        if (!free_.empty()) {
          step.batches = std::move(free_.back());
          free_.pop_back();
        }
      }
      step.more = input_->Next(&step.batches);
      const bool is_last = !step.more.ok() || !*step.more;
      absl::MutexLock lock(&mutex_);
      ready_.push_back(std::move(step));
      if (is_last) return;
    }
  }

  const std::unique_ptr<DistributedIterator> input_;  // The producer's.
  const PrefetchOptions options_;
  absl::Mutex mutex_;
  std::deque<Step> ready_ ABSL_GUARDED_BY(mutex_);
  // One arrives for each step taken, and one is removed for each step prepared.
  std::vector<std::vector<ReplicaBatch>> free_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t taken_count_ = 0;  // The consumer's.
  std::thread producer_;     // Last: it uses all members above.
};

}  // namespace

std::unique_ptr<DistributedIterator> PrefetchSteps(
    std::unique_ptr<DistributedIterator> input,
    const PrefetchOptions& options) {
  return std::make_unique<PrefetchedSteps>(std::move(input), options);
}

}  // namespace muster
