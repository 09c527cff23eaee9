#ifndef COMMON_COMPUTE_KERNELS_CUDA_CUDNN_CUDNN_H_
#define COMMON_COMPUTE_KERNELS_CUDA_CUDNN_CUDNN_H_

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/compute/kernels/cuda/cudnn/convolution_plan.h"
#include "common/compute/kernels/cuda/cudnn/cudnn_api.h"
#include "common/compute/kernels/cuda/cudnn/descriptor.h"
#include "common/core/device/device.h"
#include "common/core/device/stream.h"

namespace muster {

// cuDNN on one GPU. Thread-safe.
class Cudnn {
 public:
  // Both are borrowed for the life of the result.
  //   kUnavailable  the library cannot use the GPU; has its error
  static absl::StatusOr<std::shared_ptr<Cudnn>> Create(
      const cudnn::CudnnApi* api, Device* device);
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  const cudnn::CudnnApi& api() const { return api_; }
  Device& device() const { return device_; }

  // Returns the plan of the problem, which all of its convolutions share.
  //   errors  as ConvolutionPlan::Create()
  absl::StatusOr<std::shared_ptr<const ConvolutionPlan>> FindPlan(
      const ConvolutionProblem& problem);

  // Enqueues the plan with the addresses of `pack`.
  //   errors  as CudnnStatus(), and kUnavailable if the GPU is lost
  absl::Status Execute(driver::StreamHandle* stream,
                       const CudnnDescriptor& plan,
                       const CudnnDescriptor& pack);

 private:
  Cudnn(const cudnn::CudnnApi* api, Device* device)
      : api_(*api), device_(*device) {}

  const cudnn::CudnnApi& api_;
  Device& device_;
  absl::Mutex mutex_;  // The handle has the stream of one call.
  cudnn::Handle* handle_ ABSL_GUARDED_BY(mutex_) = nullptr;
  // Those in use, by Describe().
  std::map<std::string, std::weak_ptr<const ConvolutionPlan>> plans_
      ABSL_GUARDED_BY(mutex_);
};

// A convolution that runs. Not thread-safe.
class CudnnConvolution {
 public:
  // Addresses of the device. The plan of a gradient writes x or kernel.
  struct Operands {
    void* x = nullptr;
    void* kernel = nullptr;
    void* y = nullptr;
    void* workspace = nullptr;  // Of workspace_bytes().
    bool operator==(const Operands&) const = default;
  };

  //   errors  as ConvolutionPlan::Create()
  static absl::StatusOr<std::unique_ptr<CudnnConvolution>> Create(
      std::shared_ptr<Cudnn> library, const ConvolutionProblem& problem);

  size_t workspace_bytes() const { return plan_->workspace_bytes(); }

  // Enqueues the work.
  //   kInternal  an address is not aligned
  //   others     as Cudnn::Execute()
  absl::Status Run(DeviceStream* stream, const Operands& operands);

 private:
  CudnnConvolution(std::shared_ptr<Cudnn> library,
                   std::shared_ptr<const ConvolutionPlan> plan)
      : library_(std::move(library)), plan_(std::move(plan)) {}

  absl::StatusOr<const CudnnDescriptor*> PackOf(const Operands& operands);

  const std::shared_ptr<Cudnn> library_;
  const std::shared_ptr<const ConvolutionPlan> plan_;

  // Descriptors of addresses. Steps have few sets of them, so a step makes no
  // descriptor once these are made.
  struct Pack {
    Operands operands;
    std::optional<CudnnDescriptor> descriptor;
  };
  std::array<Pack, 4> packs_;
  size_t next_pack_ = 0;  // The oldest one.
};

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CUDA_CUDNN_CUDNN_H_
