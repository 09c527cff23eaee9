#ifndef COMMON_COMPUTE_RUNTIME_STEP_ARGUMENTS_H_
#define COMMON_COMPUTE_RUNTIME_STEP_ARGUMENTS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/device/device.h"
#include "common/core/device/stream.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// The arguments of one step at a time on a device: in pinned memory, or copied
// to the device by a stream of their own, while the step before still computes.
//
// Not thread-safe. Equivalent to: tf.data's prefetch_to_device.
class StepArguments {
 public:
  // Smaller arguments are copied by the step: that takes the device less time
  // than another stream takes the host.
  static constexpr int64_t kUploadBytesMin = 1 << 20;

  enum class Use : uint8_t {
    kNone,    // No node reads the argument.
    kHost,    // The host reads it, or the step copies it.
    kUpload,  // The device alone reads it, from memory of the device.
  };

  // `types` and `uses` are those of all arguments. `stream` is that of steps,
  // `uploads` of copies; it may be null if nothing is uploaded. `name` is the
  // graph's. All pointers are borrowed.
  //   errors  as DeviceMemory::Allocate() and Device::CreateEvent()
  static absl::StatusOr<std::unique_ptr<StepArguments>> Create(
      absl::Span<const TensorType> types, std::vector<Use> uses,
      absl::string_view name, Device* device, DeviceStream* stream,
      DeviceStream* uploads);

  // Puts the arguments of a step in their places. Work that the stream gets
  // later begins when they are there. Those before are released.
  //   errors  as PinnedMemory::Allocate() and DeviceStream::Copy(); the
  //           arguments are released
  absl::Status Stage(absl::Span<const Tensor> arguments);

  // Where the step reads argument `i`. Invalid unless it is staged and read.
  const Tensor& operator[](size_t i) const {
    return uploaded_[i].IsValid() ? uploaded_[i] : sources_[i];
  }

  // Drops memory of the caller, which no work uses any more.
  void Release();
  // Releases the arguments of a step that has not begun: blocks until their
  // copies are done.
  void Cancel();

 private:
  StepArguments(std::vector<Use> uses, Device* device, DeviceStream* stream,
                DeviceStream* uploads);

  absl::Status StageOne(size_t i, const Tensor& argument);
  absl::Status Upload();

  const std::vector<Use> uses_;
  Device& device_;
  DeviceStream& stream_;
  DeviceStream* const uploads_;
  std::unique_ptr<Event> is_uploaded_;  // Null: nothing is uploaded.
  std::vector<Tensor> sources_;         // In pinned memory, or strings.
  std::vector<Tensor> staging_;         // Pinned copies, for all steps.
  std::vector<Tensor> uploaded_;  // In memory of the device, for all steps.
};

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_STEP_ARGUMENTS_H_
