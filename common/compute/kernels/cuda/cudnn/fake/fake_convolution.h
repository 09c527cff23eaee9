#ifndef COMMON_COMPUTE_KERNELS_CUDA_CUDNN_FAKE_FAKE_CONVOLUTION_H_
#define COMMON_COMPUTE_KERNELS_CUDA_CUDNN_FAKE_FAKE_CONVOLUTION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/compute/kernels/cuda/cudnn/cudnn_api.h"
#include "common/compute/kernels/cuda/cudnn/fake/fake_descriptor.h"
#include "common/core/tensor/dtype.h"

namespace muster {

// A tensor of cuDNN: four axes with arbitrary strides.
struct FakeTensor {
  cudnn::CudnnDataType type = cudnn::CudnnDataType::kFloat32;
  std::array<int64_t, 4> extents = {};
  std::array<int64_t, 4> strides = {};
  int64_t id = 0;
  int64_t alignment_bytes = 1;
  void* data = nullptr;

  // Returns nothing if the elements overlap or leave gaps, or the alignment is
  // not a power of 2.
  static std::optional<FakeTensor> Of(const FakeDescriptor& descriptor);

  DType dtype() const;
  size_t size_bytes() const;
  int64_t Index(int64_t a, int64_t b, int64_t c, int64_t d) const {
    return a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3];
  }
};

// An operation of cuDNN: a convolution or one of its gradients, as cuDNN
// defines it, with the axes batch, channels, height, width.
struct FakeConvolution {
  cudnn::DescriptorType part = cudnn::DescriptorType::kConvolutionForward;
  FakeTensor x, w, y;
  std::array<int64_t, 2> pre_paddings = {}, post_paddings = {}, strides = {},
                         dilations = {};
  double alpha = 1;
  double beta = 0;
  bool rounds_to_tensor_float_32 = false;

  // Returns nothing if the descriptors are inconsistent, cuDNN does not list
  // their types, or cuDNN does not support the layout of the kernel.
  static std::optional<FakeConvolution> Of(const FakeDescriptor& operation);

  // Returns the tensor that the operation writes.
  FakeTensor& result();

  void Compute();
};

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CUDA_CUDNN_FAKE_FAKE_CONVOLUTION_H_
