#ifndef COMMON_LEARN_STRATEGY_WORKER_AGREEMENT_H_
#define COMMON_LEARN_STRATEGY_WORKER_AGREEMENT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// How processes that run the same program in sync agree on values.
//
// Thread-safe, but all processes call FromChief() and AgreeToStop() in the same
// order, between steps.
class WorkerAgreement {
 public:
  virtual ~WorkerAgreement() = default;

  // True if this process writes the output of a run. Exactly one of the
  // synchronous processes does.
  virtual bool is_chief() const = 0;

  // A seed that is equal on all synchronous processes, for programs that were
  // given none. Unset if this is the only process.
  virtual std::optional<uint64_t> shared_seed() const = 0;

  // Returns the chief's `bytes` on all processes; those of others are ignored.
  // `what` names the value in errors and hang reports.
  //   as Communicator
  virtual absl::StatusOr<std::string> FromChief(absl::string_view what,
                                                std::string bytes) const = 0;

  // Returns whether any of the processes requests to stop.
  //   as Communicator
  virtual absl::StatusOr<bool> AgreeToStop(bool wants_stop) const = 0;
};

// The agreement of a process that alone runs the program.
class SoleWorker final : public WorkerAgreement {
 public:
  // `seed` is that of an earlier process of the job, if there may be one.
  explicit SoleWorker(std::optional<uint64_t> seed = std::nullopt)
      : seed_(seed) {}

  bool is_chief() const override { return true; }
  std::optional<uint64_t> shared_seed() const override { return seed_; }
  absl::StatusOr<std::string> FromChief(absl::string_view,
                                        std::string bytes) const override {
    return bytes;
  }
  absl::StatusOr<bool> AgreeToStop(bool wants_stop) const override {
    return wants_stop;
  }

 private:
  const std::optional<uint64_t> seed_;
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_WORKER_AGREEMENT_H_
