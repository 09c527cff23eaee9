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
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/compute/kernels/cuda/cudnn/attention_plan.h"
#include "common/compute/kernels/cuda/cudnn/convolution_plan.h"
#include "common/compute/kernels/cuda/cudnn/cudnn_api.h"
#include "common/compute/kernels/cuda/cudnn/descriptor.h"
#include "common/compute/kernels/cuda/cudnn/execution_plan.h"
#include "common/core/device/device.h"
#include "common/core/device/stream.h"

namespace muster {

// cuDNN on one GPU. Thread-safe.
class Cudnn {
 public:
  // `api` and `device` are borrowed for the life of the result.
  //   kUnavailable  the library cannot use the GPU; contains its error
  static absl::StatusOr<std::shared_ptr<Cudnn>> Create(
      const cudnn::CudnnApi* api, Device* device);
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  const cudnn::CudnnApi& api() const { return api_; }
  Device& device() const { return device_; }

  // Returns the plan of a ConvolutionProblem or an AttentionProblem. Equal
  // problems share a plan.
  //   errors  as CudnnPlan::Create()
  template <typename Problem>
  absl::StatusOr<std::shared_ptr<const CudnnPlan>> FindPlan(
      const Problem& problem) {
    return FindPlan(Describe(problem), [&](const CudnnTarget& target) {
      return MakeCudnnPlan(target, problem);
    });
  }

  // Enqueues the plan with the addresses of `pack`.
  //   errors  as CudnnStatus(), and kUnavailable if the GPU is lost
  absl::Status Execute(driver::StreamHandle* stream,
                       const CudnnDescriptor& plan,
                       const CudnnDescriptor& pack);

 private:
  Cudnn(const cudnn::CudnnApi* api, Device* device)
      : api_(*api), device_(*device) {}

  using Maker =
      absl::FunctionRef<absl::StatusOr<CudnnPlan>(const CudnnTarget& target)>;
  absl::StatusOr<std::shared_ptr<const CudnnPlan>> FindPlan(
      const std::string& description, Maker make);

  const cudnn::CudnnApi& api_;
  Device& device_;
  absl::Mutex mutex_;  // The handle holds the stream of one call.
  cudnn::Handle* handle_ ABSL_GUARDED_BY(mutex_) = nullptr;
  // Plans in use, by Describe(problem).
  std::map<std::string, std::weak_ptr<const CudnnPlan>> plans_
      ABSL_GUARDED_BY(mutex_);
  // The last plans that were compiled. Graph rewrites create kernels only to
  // test whether they are supported. The references avoid compiling again when
  // the same kernels are created later.
  std::array<std::shared_ptr<const CudnnPlan>, 8> compiled_plans_
      ABSL_GUARDED_BY(mutex_);
  size_t next_compiled_plan_ ABSL_GUARDED_BY(mutex_) = 0;  // The oldest one.
};

// A plan that runs. Not thread-safe.
class CudnnExecution {
 public:
  static constexpr size_t kOperandsMax = 11;

  // `problem` is as in Cudnn::FindPlan().
  //   errors  as CudnnPlan::Create()
  template <typename Problem>
  static absl::StatusOr<std::unique_ptr<CudnnExecution>> Create(
      std::shared_ptr<Cudnn> library, const Problem& problem) {
    auto plan = library->FindPlan(problem);
    if (!plan.ok()) return plan.status();
    return std::unique_ptr<CudnnExecution>(
        new CudnnExecution(std::move(library), *std::move(plan)));
  }

  size_t workspace_bytes() const { return plan_->workspace_bytes(); }

  // Enqueues the work. `operands` are addresses of the device in the order of
  // CudnnPlan::operand_ids(); the workspace has workspace_bytes().
  //   kInternal  an address is not aligned
  //   others     as Cudnn::Execute()
  absl::Status Run(DeviceStream* stream, absl::Span<void* const> operands,
                   void* workspace);

 private:
  // The operands, followed by the workspace. The rest is null.
  using Addresses = std::array<void*, kOperandsMax + 1>;

  CudnnExecution(std::shared_ptr<Cudnn> library,
                 std::shared_ptr<const CudnnPlan> plan)
      : library_(std::move(library)), plan_(std::move(plan)) {}

  absl::StatusOr<const CudnnDescriptor*> PackOf(const Addresses& addresses);

  const std::shared_ptr<Cudnn> library_;
  const std::shared_ptr<const CudnnPlan> plan_;

  // Descriptors of addresses. The number of different sets is small, so later
  // steps create no descriptor.
  struct Pack {
    Addresses addresses = {};
    std::optional<CudnnDescriptor> descriptor;
  };
  std::array<Pack, 4> packs_;
  size_t next_pack_ = 0;  // The oldest one.
};

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CUDA_CUDNN_CUDNN_H_
