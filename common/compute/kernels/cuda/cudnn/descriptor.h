#ifndef COMMON_COMPUTE_KERNELS_CUDA_CUDNN_DESCRIPTOR_H_
#define COMMON_COMPUTE_KERNELS_CUDA_CUDNN_DESCRIPTOR_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/kernels/cuda/cudnn/cudnn_api.h"

namespace muster {

// Converts the result of a library function to a status.
//   kUnimplemented      the library or the GPU does not support the operation
//   kResourceExhausted  no memory
//   kUnavailable        the library finds no GPU
//   kInternal           any other error
// Messages contain the function and the library's error text.
absl::Status CudnnStatus(const cudnn::CudnnApi& api, cudnn::Result result,
                         absl::string_view function);

namespace internal {

template <typename T>
inline constexpr cudnn::AttributeType kCudnnTypeOf = cudnn::AttributeType();
template <>
inline constexpr auto kCudnnTypeOf<cudnn::Handle*> =
    cudnn::AttributeType::kHandle;
template <>
inline constexpr auto kCudnnTypeOf<cudnn::CudnnDataType> =
    cudnn::AttributeType::kDataType;
template <>
inline constexpr auto kCudnnTypeOf<int64_t> = cudnn::AttributeType::kInt64;
template <>
inline constexpr auto kCudnnTypeOf<float> = cudnn::AttributeType::kFloat;
template <>
inline constexpr auto kCudnnTypeOf<double> = cudnn::AttributeType::kDouble;
template <>
inline constexpr auto kCudnnTypeOf<void*> = cudnn::AttributeType::kVoidPointer;
template <>
inline constexpr auto kCudnnTypeOf<cudnn::ConvolutionMode> =
    cudnn::AttributeType::kConvolutionMode;
template <>
inline constexpr auto kCudnnTypeOf<bool> = cudnn::AttributeType::kBoolean;
template <>
inline constexpr auto kCudnnTypeOf<cudnn::PointwiseMode> =
    cudnn::AttributeType::kPointwiseMode;
template <>
inline constexpr auto kCudnnTypeOf<cudnn::ReductionOperator> =
    cudnn::AttributeType::kReductionOperator;
template <>
inline constexpr auto kCudnnTypeOf<cudnn::HeuristicMode> =
    cudnn::AttributeType::kHeuristicMode;
template <>
inline constexpr auto kCudnnTypeOf<cudnn::NumericalNote> =
    cudnn::AttributeType::kNumericalNote;
template <>
inline constexpr auto kCudnnTypeOf<cudnn::BehaviorNote> =
    cudnn::AttributeType::kBehaviorNote;
template <>
inline constexpr auto kCudnnTypeOf<char> = cudnn::AttributeType::kChar;

}  // namespace internal

// A descriptor of cuDNN's backend API. The caller sets attributes, finalizes
// the descriptor, and then uses it. Errors of all functions are those of
// CudnnStatus(). Not thread-safe.
class CudnnDescriptor {
 public:
  // `api` is borrowed for the life of the result.
  static absl::StatusOr<CudnnDescriptor> Create(const cudnn::CudnnApi* api,
                                                cudnn::DescriptorType type);

  cudnn::Descriptor handle() const { return handle_.get(); }

  // Sets an attribute. T determines cuDNN's type of the attribute. Finalize()
  // returns the first error.
  template <typename T>
  void SetList(cudnn::AttributeName attribute, absl::Span<const T> values) {
    Note(api_->cudnnBackendSetAttribute(
             handle(), attribute, internal::kCudnnTypeOf<T>,
             static_cast<int64_t>(values.size()), values.data()),
         "cudnnBackendSetAttribute");
  }
  template <typename T>
  void Set(cudnn::AttributeName attribute, T value) {
    SetList(attribute, absl::Span<const T>(&value, 1));
  }
  void Set(cudnn::AttributeName attribute, const CudnnDescriptor& value);
  void SetDescriptors(cudnn::AttributeName attribute,
                      absl::Span<const cudnn::Descriptor> values);

  absl::Status Finalize();

  // Reads the elements of an attribute.
  template <typename T>
  absl::StatusOr<std::vector<T>> GetList(cudnn::AttributeName attribute) const {
    int64_t count = 0;
    cudnn::Result result = api_->cudnnBackendGetAttribute(
        handle(), attribute, internal::kCudnnTypeOf<T>, 0, &count, nullptr);
    std::vector<T> values(result == cudnn::kSuccess ? count : 0);
    if (result == cudnn::kSuccess && count > 0) {
      result = api_->cudnnBackendGetAttribute(handle(), attribute,
                                              internal::kCudnnTypeOf<T>, count,
                                              &count, values.data());
      values.resize(result == cudnn::kSuccess ? count : 0);
    }
    if (result != cudnn::kSuccess) return ReadError(result);
    return values;
  }

  // Reads the descriptors of an attribute, which are of `type`.
  absl::StatusOr<std::vector<CudnnDescriptor>> GetDescriptors(
      cudnn::AttributeName attribute, cudnn::DescriptorType type) const;

 private:
  CudnnDescriptor(const cudnn::CudnnApi* api, cudnn::Descriptor handle)
      : api_(api), handle_(handle, api->cudnnBackendDestroyDescriptor) {}

  void Note(cudnn::Result result, absl::string_view function) {
    if (result != cudnn::kSuccess) {
      status_.Update(CudnnStatus(*api_, result, function));
    }
  }
  absl::Status ReadError(cudnn::Result result) const {
    return CudnnStatus(*api_, result, "cudnnBackendGetAttribute");
  }

  const cudnn::CudnnApi* api_;
  std::unique_ptr<void,
                  decltype(cudnn::CudnnApi::cudnnBackendDestroyDescriptor)>
      handle_;
  absl::Status status_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CUDA_CUDNN_DESCRIPTOR_H_
