#include "common/compute/kernels/cuda/cudnn/fake/fake_convolution.h"

#include <algorithm>
#include <tuple>
#include <type_traits>
#include <vector>

#include "common/compute/kernels/cuda/testing/library_elements.h"

namespace muster {

using cudnn::AttributeName;
using cudnn::DescriptorType;

namespace {

template <size_t kCount>
std::array<int64_t, kCount> Numbers(const FakeDescriptor& descriptor,
                                    AttributeName attribute) {
  const std::vector<int64_t> list = descriptor.List<int64_t>(attribute);
  std::array<int64_t, kCount> numbers;
  std::copy_n(list.begin(), kCount, numbers.begin());
  return numbers;
}

// True if the elements fill their memory without gaps, for some order of the
// axes.
bool IsDense(const FakeTensor& tensor) {
  std::array<int, 4> order = {0, 1, 2, 3};
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return tensor.strides[a] < tensor.strides[b];
  });
  int64_t expected = 1;
  for (const int axis : order) {
    if (tensor.extents[axis] < 1) return false;
    if (tensor.extents[axis] == 1) continue;
    if (tensor.strides[axis] != expected) return false;
    expected *= tensor.extents[axis];
  }
  return true;
}

// True if the elements are in row order of the axes, or of the axes with the
// channels last.
bool IsKernelLayout(const FakeTensor& kernel) {
  const auto& [outputs, inputs, height, width] = kernel.extents;
  const std::array<int64_t, 4> plain = {inputs * height * width, height * width,
                                        width, 1};
  const std::array<int64_t, 4> channels_last = {height * width * inputs, 1,
                                                width * inputs, inputs};
  return kernel.strides == plain || kernel.strides == channels_last;
}

// The names of the same attributes in the three operations.
struct ConvolutionNames {
  AttributeName alpha, beta, convolution, x, w, y;
};

ConvolutionNames ConvolutionNamesOf(DescriptorType part) {
  switch (part) {
    case DescriptorType::kConvolutionForward:
      return {AttributeName::kForwardAlpha,       AttributeName::kForwardBeta,
              AttributeName::kForwardConvolution, AttributeName::kForwardX,
              AttributeName::kForwardW,           AttributeName::kForwardY};
    case DescriptorType::kConvolutionBackwardData:
      return {AttributeName::kBackwardDataAlpha,
              AttributeName::kBackwardDataBeta,
              AttributeName::kBackwardDataConvolution,
              AttributeName::kBackwardDataDx,
              AttributeName::kBackwardDataW,
              AttributeName::kBackwardDataDy};
    default:
      return {AttributeName::kBackwardFilterAlpha,
              AttributeName::kBackwardFilterBeta,
              AttributeName::kBackwardFilterConvolution,
              AttributeName::kBackwardFilterX,
              AttributeName::kBackwardFilterDw,
              AttributeName::kBackwardFilterDy};
  }
}

double Factor(const FakeDescriptor& operation, AttributeName attribute) {
  return operation.TypeOf(attribute) == cudnn::AttributeType::kDouble
             ? operation.Get<double>(attribute)
             : operation.Get<float>(attribute);
}

// True if cuDNN lists this combination of types.
bool AreTypesListed(const FakeDescriptor& operation,
                    const ConvolutionNames& names, const FakeConvolution& made,
                    cudnn::CudnnDataType compute_type) {
  const bool is_double = made.x.type == cudnn::CudnnDataType::kFloat64;
  const auto factors =
      is_double ? cudnn::AttributeType::kDouble : cudnn::AttributeType::kFloat;
  return made.w.type == made.x.type && made.y.type == made.x.type &&
         compute_type == (is_double ? cudnn::CudnnDataType::kFloat64
                                    : cudnn::CudnnDataType::kFloat32) &&
         operation.TypeOf(names.alpha) == factors &&
         operation.TypeOf(names.beta) == factors;
}

bool DoExtentsFit(const FakeConvolution& made) {
  const auto& [x, w, y] =
      std::tie(made.x.extents, made.w.extents, made.y.extents);
  if (x[0] != y[0] || x[1] % w[1] != 0 || w[0] != y[1] ||
      w[0] % (x[1] / w[1]) != 0) {
    return false;
  }
  for (const int axis : {0, 1}) {
    const int64_t padded =
        x[2 + axis] + made.pre_paddings[axis] + made.post_paddings[axis];
    const int64_t span = (w[2 + axis] - 1) * made.dilations[axis] + 1;
    if (span > padded ||
        y[2 + axis] != (padded - span) / made.strides[axis] + 1) {
      return false;
    }
  }
  return true;
}

// The computation with elements of T.
template <typename T>
class Loops {
 public:
  explicit Loops(FakeConvolution* convolution) : c_(*convolution) {}

  void Run() {
    const FakeTensor& to = c_.result();
    std::vector<double> sums(to.size_bytes() / sizeof(T), 0);
    ForEachProduct([&](int64_t x, int64_t w, int64_t y) {
      if (&to == &c_.y) {
        sums[y] += Operand(c_.x, x) * Operand(c_.w, w);
      } else if (&to == &c_.x) {
        sums[x] += Operand(c_.y, y) * Operand(c_.w, w);
      } else {
        sums[w] += Operand(c_.x, x) * Operand(c_.y, y);
      }
    });
    for (size_t i = 0; i < sums.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      double value = c_.alpha * sums[i];
      if (c_.beta != 0) value += c_.beta * LoadDouble<T>(to.data, at);
      StoreDouble<T>(value, to.data, at);
    }
  }

 private:
  double Operand(const FakeTensor& tensor, int64_t index) const {
    const double element = LoadDouble<T>(tensor.data, index);
    return c_.rounds_to_tensor_float_32 ? RoundToTensorFloat32(element)
                                        : element;
  }

  // Calls `add` with the elements of each product in the sum that defines a
  // convolution.
  template <typename Add>
  void ForEachProduct(Add add) const {
    const auto& y = c_.y.extents;
    for (int64_t n = 0; n < y[0]; ++n) {
      for (int64_t k = 0; k < y[1]; ++k) {
        for (int64_t p = 0; p < y[2]; ++p) {
          for (int64_t q = 0; q < y[3]; ++q) {
            AddWindow(n, k, p, q, add);
          }
        }
      }
    }
  }

  template <typename Add>
  void AddWindow(int64_t n, int64_t k, int64_t p, int64_t q, Add add) const {
    const auto& w = c_.w.extents;
    const int64_t group_outputs = w[0] / (c_.x.extents[1] / w[1]);
    const int64_t first = k / group_outputs * w[1];
    for (int64_t r = 0; r < w[2]; ++r) {
      const int64_t h = InputOf(0, p, r);
      for (int64_t s = 0; s < w[3] && h >= 0; ++s) {
        const int64_t v = InputOf(1, q, s);
        for (int64_t c = 0; c < w[1] && v >= 0; ++c) {
          add(c_.x.Index(n, first + c, h, v), c_.w.Index(k, c, r, s),
              c_.y.Index(n, k, p, q));
        }
      }
    }
  }

  // Negative in the padding.
  int64_t InputOf(int axis, int64_t window, int64_t element) const {
    const int64_t at = window * c_.strides[axis] - c_.pre_paddings[axis] +
                       element * c_.dilations[axis];
    return at < c_.x.extents[2 + axis] ? at : -1;
  }

  FakeConvolution& c_;
};

}  // namespace

std::optional<FakeTensor> FakeTensor::Of(const FakeDescriptor& descriptor) {
  if (descriptor.type() != DescriptorType::kTensor ||
      !descriptor.IsComplete()) {
    return std::nullopt;
  }
  FakeTensor tensor = {
      .type =
          descriptor.Get<cudnn::CudnnDataType>(AttributeName::kTensorDataType),
      .extents = Numbers<4>(descriptor, AttributeName::kTensorDimensions),
      .strides = Numbers<4>(descriptor, AttributeName::kTensorStrides),
      .id = descriptor.Get<int64_t>(AttributeName::kTensorUniqueId),
      .alignment_bytes =
          descriptor.Get<int64_t>(AttributeName::kTensorByteAlignment)};
  const int64_t alignment = tensor.alignment_bytes;
  const bool is_power = alignment > 0 && (alignment & (alignment - 1)) == 0;
  if (tensor.dtype() == DType::kInvalid || !is_power || !IsDense(tensor)) {
    return std::nullopt;
  }
  return tensor;
}

DType FakeTensor::dtype() const {
  switch (type) {
    case cudnn::CudnnDataType::kFloat32:
      return DType::kFloat32;
    case cudnn::CudnnDataType::kFloat64:
      return DType::kFloat64;
    case cudnn::CudnnDataType::kFloat16:
      return DType::kFloat16;
    case cudnn::CudnnDataType::kBfloat16:
      return DType::kBfloat16;
    case cudnn::CudnnDataType::kInt32:
      return DType::kInt32;
    case cudnn::CudnnDataType::kBool:
      return DType::kBool;
  }
  return DType::kInvalid;
}

size_t FakeTensor::size_bytes() const {
  int64_t count = 1;
  for (const int64_t extent : extents) count *= extent;
  return static_cast<size_t>(count) * SizeOf(dtype());
}

std::optional<FakeConvolution> FakeConvolution::Of(
    const FakeDescriptor& operation) {
  if (!operation.IsComplete()) return std::nullopt;
  const ConvolutionNames names = ConvolutionNamesOf(operation.type());
  const FakeDescriptor& convolution = *operation.Descriptor(names.convolution);
  const auto x = FakeTensor::Of(*operation.Descriptor(names.x));
  const auto w = FakeTensor::Of(*operation.Descriptor(names.w));
  const auto y = FakeTensor::Of(*operation.Descriptor(names.y));
  if (convolution.type() != DescriptorType::kConvolution || !x || !w || !y) {
    return std::nullopt;
  }
  // For other layouts the library computes wrong results without an error.
  if (!IsKernelLayout(*w)) return std::nullopt;
  FakeConvolution made = {
      .part = operation.type(),
      .x = *x,
      .w = *w,
      .y = *y,
      .pre_paddings =
          Numbers<2>(convolution, AttributeName::kConvolutionPrePaddings),
      .post_paddings =
          Numbers<2>(convolution, AttributeName::kConvolutionPostPaddings),
      .strides = Numbers<2>(convolution, AttributeName::kConvolutionStrides),
      .dilations =
          Numbers<2>(convolution, AttributeName::kConvolutionDilations),
      .alpha = Factor(operation, names.alpha),
      .beta = Factor(operation, names.beta)};
  const auto compute_type = convolution.Get<cudnn::CudnnDataType>(
      AttributeName::kConvolutionComputeType);
  if (convolution.Get<int64_t>(AttributeName::kConvolutionSpatialDimensions) !=
          2 ||
      convolution.Get<cudnn::ConvolutionMode>(
          AttributeName::kConvolutionMode) !=
          cudnn::ConvolutionMode::kCrossCorrelation ||
      !AreTypesListed(operation, names, made, compute_type) ||
      !DoExtentsFit(made)) {
    return std::nullopt;
  }
  return made;
}

FakeTensor& FakeConvolution::result() {
  switch (part) {
    case DescriptorType::kConvolutionForward:
      return y;
    case DescriptorType::kConvolutionBackwardData:
      return x;
    default:
      return w;
  }
}

void FakeConvolution::Compute() {
  VisitNumber(x.dtype(), [&]<typename T>() {
    if constexpr (!std::is_integral_v<T>) Loops<T>(this).Run();
  });
}

}  // namespace muster
