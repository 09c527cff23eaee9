#include "common/compute/kernels/cuda/cudnn/cudnn.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"

namespace muster {

using cudnn::AttributeName;
using cudnn::DescriptorType;

absl::StatusOr<std::shared_ptr<Cudnn>> Cudnn::Create(const cudnn::CudnnApi* api,
                                                     Device* device) {
  std::shared_ptr<Cudnn> library(new Cudnn(api, device));
  RETURN_IF_ERROR(device->context().MakeCurrent());
  const absl::MutexLock lock(&library->mutex_);
  const absl::Status created =
      CudnnStatus(*api, api->cudnnCreate(&library->handle_), "cudnnCreate");
  if (!created.ok()) return absl::UnavailableError(created.message());
  return library;
}

Cudnn::~Cudnn() {
  const absl::MutexLock lock(&mutex_);
  if (handle_ != nullptr && device_.context().MakeCurrent().ok()) {
    api_.cudnnDestroy(handle_);
  }
}

absl::StatusOr<std::shared_ptr<const ConvolutionPlan>> Cudnn::FindPlan(
    const ConvolutionProblem& problem) {
  RETURN_IF_ERROR(device_.context().MakeCurrent());
  const absl::MutexLock lock(&mutex_);
  std::weak_ptr<const ConvolutionPlan>& known = plans_[Describe(problem)];
  if (auto plan = known.lock(); plan != nullptr) return plan;
  ASSIGN_OR_RETURN(
      ConvolutionPlan made,
      ConvolutionPlan::Create({.api = &api_, .handle = handle_}, problem));
  auto plan = std::make_shared<const ConvolutionPlan>(std::move(made));
  known = plan;
  return plan;
}

absl::Status Cudnn::Execute(driver::StreamHandle* stream,
                            const CudnnDescriptor& plan,
                            const CudnnDescriptor& pack) {
  RETURN_IF_ERROR(device_.context().MakeCurrent());
  const absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(CudnnStatus(api_, api_.cudnnSetStream(handle_, stream),
                              "cudnnSetStream"));
  const cudnn::Result result =
      api_.cudnnBackendExecute(handle_, plan.handle(), pack.handle());
  // A GPU that is lost is reported as such.
  if (cudnn::CategoryOf(result) == cudnn::kExecutionFailed) {
    RETURN_IF_ERROR(device_.CheckHealth());
  }
  return CudnnStatus(api_, result, "cudnnBackendExecute");
}

absl::StatusOr<std::unique_ptr<CudnnConvolution>> CudnnConvolution::Create(
    std::shared_ptr<Cudnn> library, const ConvolutionProblem& problem) {
  ASSIGN_OR_RETURN(std::shared_ptr<const ConvolutionPlan> plan,
                   library->FindPlan(problem));
  return std::unique_ptr<CudnnConvolution>(
      new CudnnConvolution(std::move(library), std::move(plan)));
}

absl::Status CudnnConvolution::Run(DeviceStream* stream,
                                   const Operands& operands) {
  for (const void* address :
       {operands.x, operands.kernel, operands.y, operands.workspace}) {
    const auto number = reinterpret_cast<uintptr_t>(address);
    if (number % ConvolutionPlan::kAlignmentBytes != 0) {
      return absl::InternalError(absl::StrCat(
          "an operand of a convolution is at ", number, ", no multiple of ",
          ConvolutionPlan::kAlignmentBytes, " bytes"));
    }
  }
  return stream->Call(
      {this, operands.x, operands.kernel, operands.y, operands.workspace},
      [this, operands](driver::StreamHandle* handle) -> absl::Status {
        ASSIGN_OR_RETURN(const CudnnDescriptor* const pack, PackOf(operands));
        return library_->Execute(handle, plan_->plan(), *pack);
      });
}

absl::StatusOr<const CudnnDescriptor*> CudnnConvolution::PackOf(
    const Operands& operands) {
  for (const Pack& pack : packs_) {
    if (pack.descriptor.has_value() && pack.operands == operands) {
      return &*pack.descriptor;
    }
  }
  ASSIGN_OR_RETURN(
      CudnnDescriptor made,
      CudnnDescriptor::Create(&library_->api(), DescriptorType::kVariantPack));
  const int64_t ids[] = {kCudnnX, kCudnnKernel, kCudnnY};
  void* const addresses[] = {operands.x, operands.kernel, operands.y};
  made.SetList<int64_t>(AttributeName::kPackUniqueIds, ids);
  made.SetList<void*>(AttributeName::kPackDataPointers, addresses);
  made.Set(AttributeName::kPackWorkspace, operands.workspace);
  RETURN_IF_ERROR(made.Finalize());
  Pack& pack = packs_[next_pack_];
  next_pack_ = (next_pack_ + 1) % packs_.size();
  pack.operands = operands;
  pack.descriptor = std::move(made);
  return &*pack.descriptor;
}

}  // namespace muster
