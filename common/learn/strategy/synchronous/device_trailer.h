#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_DEVICE_TRAILER_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_DEVICE_TRAILER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/compute/kernels/cuda/step_gate.h"
#include "common/core/device/device.h"
#include "common/core/device/stream.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/strategy/synchronous/device_code/trailer_parameters.h"
#include "common/learn/strategy/synchronous/pack_memory.h"

namespace muster {

// Lets the device of a replica decide whether the updates of a step are
// applied, by what all replicas say at its end:
//
//   Weigh()               once at most, when the weight is computed
//   Write()               before the last pack is combined
//   ... the packs are combined
//   Decide()              closes the gate unless the step is applied
//   ... updates behind the gate
//   Await()               the host learns the outcome
//
// All but Await() enqueue on the stream of the step, and do not wait. Two steps
// may have been decided without being awaited. Once a step is not applied,
// later ones are not either, until the host opens the gate.
//
// Errors are those of the device. Not thread-safe.
class DeviceTrailer {
 public:
  // How many steps may have been decided without being awaited.
  static constexpr int kDecidedMax = 2;

  struct Options {
    Device* device = nullptr;        // Borrowed.
    DeviceStream* stream = nullptr;  // Borrowed.
    StepGate* gate = nullptr;        // Borrowed; of the stream.
    double expected_weight = 1;
    // kTrailerFieldCount floats of the trailer in its pack, where they are
    // contributed and summed.
    Tensor fields;
    // Parts of packs with all that the host is to learn of a step.
    std::vector<Tensor> parts;
  };

  static absl::StatusOr<std::unique_ptr<DeviceTrailer>> Create(Options options);

  // The weight of the gradients that come next: a float in the memory of the
  // device.
  absl::Status Weigh(const float* weight);
  // The scale of these gradients.
  PackScale contribution() const {
    return {.on_device = &state()->contribution};
  }

  // `fields` are those of this replica, but for kInvalidData and, if
  // `is_weighed`, kWeight.
  absl::Status Write(
      const std::array<float, internal::kTrailerFieldCount>& fields,
      bool is_weighed);

  absl::Status Decide();
  // From the sums of gradients to their mean, and from sums to the mean over
  // leaves with data.
  PackScale gradient_scale() const { return {.on_device = &state()->gradient}; }
  PackScale mean_scale() const { return {.on_device = &state()->mean}; }

  // Blocks until the first step that has been decided is there, which is that
  // of copy() until two more are decided.
  //   kDeadlineExceeded  it is not in time
  absl::Status Await(absl::Time deadline);
  // Forgets the steps that have been decided; the work of the stream is done.
  void ForgetDecided() { decided_count_ = 0; }
  // The bytes of a part as the last Await() found them.
  const std::shared_ptr<Buffer>& copy(int part) const {
    return rings_[part][awaited_];
  }

  // For the communicator, which sets it before a collective fails.
  const std::shared_ptr<Buffer>& end_word() const { return end_word_; }

 private:
  explicit DeviceTrailer(Options options) : options_(std::move(options)) {}

  absl::Status Allocate();
  internal::TrailerState* state() const {
    return reinterpret_cast<internal::TrailerState*>(state_->data());
  }
  template <typename Parameter>
  absl::Status Launch(absl::string_view kernel, Parameter parameter);

  const Options options_;
  std::shared_ptr<Buffer> state_;     // A TrailerState. Outlives the stream.
  std::shared_ptr<Buffer> end_word_;  // Pinned: an int32.
  // By part, pinned: of the steps that are decided, in turn.
  std::vector<std::array<std::shared_ptr<Buffer>, kDecidedMax>> rings_;
  std::array<std::unique_ptr<Event>, kDecidedMax> copied_;
  int next_ = 0;           // Of the rings, for the next step.
  int awaited_ = 0;        // Of the last step awaited.
  int decided_count_ = 0;  // Not awaited.
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_DEVICE_TRAILER_H_
