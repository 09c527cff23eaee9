#include "common/compute/kernels/cuda/cudnn/descriptor.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"

namespace muster {

absl::Status CudnnStatus(const cudnn::CudnnApi& api, cudnn::Result result,
                         absl::string_view function) {
  if (result == cudnn::kSuccess) return absl::OkStatus();
  char details[512] = "";
  api.cudnnGetLastErrorString(details, sizeof(details));
  const std::string message = absl::StrCat(
      function, " of cuDNN failed: ", api.cudnnGetErrorString(result), " (",
      result, ")", details[0] == '\0' ? "" : ": ", details);
  if (result == cudnn::kHostAllocationFailed ||
      result == cudnn::kDeviceAllocationFailed) {
    return absl::ResourceExhaustedError(message);
  }
  if (cudnn::CategoryOf(result) == cudnn::kNotSupported) {
    return absl::UnimplementedError(message);
  }
  return result == cudnn::kNotInitialized ? absl::UnavailableError(message)
                                          : absl::InternalError(message);
}

absl::StatusOr<CudnnDescriptor> CudnnDescriptor::Create(
    const cudnn::CudnnApi* api, cudnn::DescriptorType type) {
  cudnn::Descriptor handle = nullptr;
  RETURN_IF_ERROR(CudnnStatus(*api,
                              api->cudnnBackendCreateDescriptor(type, &handle),
                              "cudnnBackendCreateDescriptor"));
  return CudnnDescriptor(api, handle);
}

void CudnnDescriptor::Set(cudnn::AttributeName attribute,
                          const CudnnDescriptor& value) {
  SetDescriptors(attribute, {value.handle()});
}

void CudnnDescriptor::SetDescriptors(
    cudnn::AttributeName attribute,
    absl::Span<const cudnn::Descriptor> values) {
  Note(api_->cudnnBackendSetAttribute(
           handle(), attribute, cudnn::AttributeType::kDescriptor,
           static_cast<int64_t>(values.size()), values.data()),
       "cudnnBackendSetAttribute");
}

absl::Status CudnnDescriptor::Finalize() {
  if (status_.ok()) {
    Note(api_->cudnnBackendFinalize(handle()), "cudnnBackendFinalize");
  }
  return status_;
}

absl::StatusOr<std::vector<CudnnDescriptor>> CudnnDescriptor::GetDescriptors(
    cudnn::AttributeName attribute, cudnn::DescriptorType type) const {
  constexpr auto kType = cudnn::AttributeType::kDescriptor;
  int64_t count = 0;
  cudnn::Result result = api_->cudnnBackendGetAttribute(
      handle(), attribute, kType, 0, &count, nullptr);
  if (result != cudnn::kSuccess) return ReadError(result);
  std::vector<CudnnDescriptor> descriptors;
  std::vector<cudnn::Descriptor> handles;
  for (int64_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(CudnnDescriptor made, Create(api_, type));
    handles.push_back(made.handle());
    descriptors.push_back(std::move(made));
  }
  if (count == 0) return descriptors;
  result = api_->cudnnBackendGetAttribute(handle(), attribute, kType, count,
                                          &count, handles.data());
  if (result != cudnn::kSuccess) return ReadError(result);
  while (static_cast<int64_t>(descriptors.size()) > count) {
    descriptors.pop_back();
  }
  return descriptors;
}

}  // namespace muster
