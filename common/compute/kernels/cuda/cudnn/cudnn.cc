#include "common/compute/kernels/cuda/cudnn/cudnn.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/core/base/check.h"
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

absl::StatusOr<std::shared_ptr<const CudnnPlan>> Cudnn::FindPlan(
    const std::string& description, Maker make) {
  RETURN_IF_ERROR(device_.context().MakeCurrent());
  const absl::MutexLock lock(&mutex_);
  std::weak_ptr<const CudnnPlan>& known = plans_[description];
  if (auto plan = known.lock(); plan != nullptr) return plan;
  ASSIGN_OR_RETURN(CudnnPlan made, make({.api = &api_, .handle = handle_}));
  auto plan = std::make_shared<const CudnnPlan>(std::move(made));
  known = plan;
  if (plan->was_compiled()) {
    compiled_plans_[next_compiled_plan_] = plan;
    next_compiled_plan_ = (next_compiled_plan_ + 1) % compiled_plans_.size();
  }
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
  // Reports a lost GPU instead of a failed call.
  if (cudnn::CategoryOf(result) == cudnn::kExecutionFailed) {
    RETURN_IF_ERROR(device_.CheckHealth());
  }
  return CudnnStatus(api_, result, "cudnnBackendExecute");
}

absl::Status CudnnExecution::Run(DeviceStream* stream,
                                 absl::Span<void* const> operands,
                                 void* workspace) {
  MUSTER_CHECK(operands.size() == plan_->operand_ids().size() &&
               operands.size() <= kOperandsMax);
  Addresses addresses = {};
  std::copy(operands.begin(), operands.end(), addresses.begin());
  addresses[operands.size()] = workspace;
  for (const void* address : addresses) {
    const auto number = reinterpret_cast<uintptr_t>(address);
    if (number % CudnnPlan::kAlignmentBytes != 0) {
      return absl::InternalError(absl::StrCat(
          "an operand of cuDNN is at ", number, ", which is not a multiple of ",
          CudnnPlan::kAlignmentBytes, " bytes"));
    }
  }
  const auto& a = addresses;
  static_assert(std::tuple_size_v<Addresses> == 12);
  return stream->Call(
      {this, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10],
       a[11]},
      [this, addresses](driver::StreamHandle* handle) -> absl::Status {
        ASSIGN_OR_RETURN(const CudnnDescriptor* const pack, PackOf(addresses));
        return library_->Execute(handle, plan_->plan(), *pack);
      });
}

absl::StatusOr<const CudnnDescriptor*> CudnnExecution::PackOf(
    const Addresses& addresses) {
  for (const Pack& pack : packs_) {
    if (pack.descriptor.has_value() && pack.addresses == addresses) {
      return &*pack.descriptor;
    }
  }
  ASSIGN_OR_RETURN(
      CudnnDescriptor made,
      CudnnDescriptor::Create(&library_->api(), DescriptorType::kVariantPack));
  const size_t operand_count = plan_->operand_ids().size();
  std::vector<int64_t> ids(plan_->operand_ids().begin(),
                           plan_->operand_ids().end());
  std::vector<void*> pointers(addresses.begin(),
                              addresses.begin() + operand_count);
  for (const CudnnGraph::Scalar& scalar : plan_->scalars()) {
    ids.push_back(scalar.id);
    // cuDNN does not write to it.
    pointers.push_back(const_cast<float*>(&scalar.value));
  }
  made.SetList<int64_t>(AttributeName::kPackUniqueIds, ids);
  made.SetList<void*>(AttributeName::kPackDataPointers, pointers);
  made.Set(AttributeName::kPackWorkspace, addresses[operand_count]);
  RETURN_IF_ERROR(made.Finalize());
  Pack& pack = packs_[next_pack_];
  next_pack_ = (next_pack_ + 1) % packs_.size();
  pack.addresses = addresses;
  pack.descriptor = std::move(made);
  return &*pack.descriptor;
}

}  // namespace muster
