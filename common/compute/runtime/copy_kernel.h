#ifndef COMMON_COMPUTE_RUNTIME_COPY_KERNEL_H_
#define COMMON_COMPUTE_RUNTIME_COPY_KERNEL_H_

#include "common/compute/kernels/kernel.h"
#include "common/core/device/stream.h"

namespace muster {

// The kernel of kCopyToDeviceOp and kCopyToHostOp: enqueues a copy of input 0
// to output 0, in either direction.
class CopyKernel final : public Kernel {
 public:
  absl::Status Run(const KernelArguments& arguments) override {
    return arguments.stream->Copy(*arguments.inputs[0], arguments.outputs[0]);
  }
};

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_COPY_KERNEL_H_
