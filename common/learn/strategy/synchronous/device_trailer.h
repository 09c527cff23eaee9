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
// applied, from the trailers of all replicas at its end:
//
//   Weigh()               once at most, when the weight is computed
//   Write()               before the last pack is combined
//   ... the packs are combined
//   Decide()              closes the gate unless the step is applied
//   ... the updates, which depend on the gate
//   Await()               the host reads the outcome
//
// All functions but Await() enqueue on the stream of the step and do not wait.
// Two steps may be decided and not awaited. If a step is not applied, later
// ones are not applied either until the host opens the gate.
//
// Errors are those of the device. Not thread-safe.
class DeviceTrailer {
 public:
  // Maximum number of steps that are decided and not awaited.
  static constexpr int kDecidedMax = 2;

  struct Options {
    Device* device = nullptr;        // Borrowed.
    DeviceStream* stream = nullptr;  // Borrowed.
    StepGate* gate = nullptr;        // Borrowed; the gate of `stream`.
    double expected_weight = 1;
    // The kTrailerFieldCount floats of the trailer in its pack, where they are
    // contributed and summed.
    Tensor fields;
    // Parts of packs with all values of a step that the host reads.
    std::vector<Tensor> parts;
  };

  static absl::StatusOr<std::unique_ptr<DeviceTrailer>> Create(Options options);

  // Sets the weight of the gradients that are contributed next: a float in the
  // memory of the device.
  absl::Status Weigh(const float* weight);
  // Returns the scale of these gradients.
  PackScale contribution() const {
    return {.on_device = &state()->contribution};
  }

  // `fields` are the fields of this replica, except kInvalidData and, if
  // `is_weighed`, kWeight.
  absl::Status Write(
      const std::array<float, internal::kTrailerFieldCount>& fields,
      bool is_weighed);

  absl::Status Decide();
  // Return the scale from the sums of gradients to their mean, and from sums to
  // the mean over leaves with data.
  PackScale gradient_scale() const { return {.on_device = &state()->gradient}; }
  PackScale mean_scale() const { return {.on_device = &state()->mean}; }

  // Blocks until the device has decided the oldest step that is not awaited.
  // copy() refers to this step until two more are decided.
  //   kDeadlineExceeded  the decision is not made by the deadline
  absl::Status Await(absl::Time deadline);
  // Discards the decided steps. Requires that the work of the stream is done.
  void ForgetDecided() { decided_count_ = 0; }
  // Returns the bytes of a part for the step of the last Await().
  const std::shared_ptr<Buffer>& copy(int part) const {
    return rings_[part][awaited_];
  }

  // Returns the word that the communicator sets before a collective fails.
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
  // By part, in pinned memory: copies for the decided steps, used in rotation.
  std::vector<std::array<std::shared_ptr<Buffer>, kDecidedMax>> rings_;
  std::array<std::unique_ptr<Event>, kDecidedMax> copied_;
  int next_ = 0;           // Index in the rings for the next step.
  int awaited_ = 0;        // Index in the rings of the last step awaited.
  int decided_count_ = 0;  // Steps decided and not awaited.
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_DEVICE_TRAILER_H_
