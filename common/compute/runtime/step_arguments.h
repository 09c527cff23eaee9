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

// The arguments of one step at a time on a device. They are in pinned memory,
// or a separate stream copies them to the device while the previous step
// computes.
//
// Not thread-safe. Equivalent to: tf.data's prefetch_to_device.
class StepArguments {
 public:
  // The step itself copies smaller arguments: that costs the device less time
  // than another stream costs the host.
  static constexpr int64_t kUploadBytesMin = 1 << 20;

  enum class Use : uint8_t {
    kNone,    // No node reads the argument.
    kHost,    // The host reads it, or the step copies it.
    kUpload,  // Only the device reads it, from its own memory.
  };

  // `types` and `uses` cover all arguments. `stream` runs the steps. `uploads`
  // runs the copies and may be null if no argument is uploaded. `name` is the
  // name of the graph. All pointers are borrowed.
  //   errors  as DeviceMemory::Allocate() and Device::CreateEvent()
  static absl::StatusOr<std::unique_ptr<StepArguments>> Create(
      absl::Span<const TensorType> types, std::vector<Use> uses,
      absl::string_view name, Device* device, DeviceStream* stream,
      DeviceStream* uploads);

  // Stages the arguments of a step, and releases the earlier ones. Work that is
  // enqueued on the stream later starts when they are in place.
  //   errors  as PinnedMemory::Allocate() and DeviceStream::Copy(); the
  //           arguments are released
  absl::Status Stage(absl::Span<const Tensor> arguments);

  // Returns argument `i` in the memory from which the step reads it. Invalid
  // unless it is staged and the step reads it.
  const Tensor& operator[](size_t i) const {
    return uploaded_[i].IsValid() ? uploaded_[i] : sources_[i];
  }

  // Drops references to the caller's memory. Requires that no work still uses
  // it.
  void Release();
  // Releases the arguments of a step that has not begun. Blocks until their
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
  std::unique_ptr<Event> is_uploaded_;  // Null if nothing is uploaded.
  std::vector<Tensor> sources_;         // In pinned memory, or strings.
  std::vector<Tensor> staging_;         // Pinned copies, reused by all steps.
  std::vector<Tensor> uploaded_;  // In device memory, reused by all steps.
};

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_STEP_ARGUMENTS_H_
