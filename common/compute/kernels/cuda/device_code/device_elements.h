#ifndef COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_DEVICE_ELEMENTS_H_
#define COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_DEVICE_ELEMENTS_H_

#include "common/compute/functions/numbers.h"
#include "common/core/base/host_device.h"

// The types that device kernels share with the host code that launches them:
// element types, layouts, and the record of data errors.
namespace muster::internal {

// The numbers of DType. A kernel takes the storage type as data, so there is
// one kernel for each computation type, not for each storage type.
enum class ElementType : uint8_t {
  kFloat32 = 1,
  kFloat64 = 2,
  kInt32 = 3,
  kUint8 = 4,
  kInt64 = 9,
  kBool = 10,
  kBfloat16 = 14,
  kFloat16 = 19,
};

// Memory of the device that holds elements of one type.
struct DeviceElements {
  void* data;
  ElementType type;

  bool operator==(const DeviceElements&) const = default;
};

template <typename C>
MUSTER_HOST_DEVICE C LoadElement(const DeviceElements& from, int64_t i) {
  switch (from.type) {
    case ElementType::kFloat32:
      return static_cast<C>(static_cast<const float*>(from.data)[i]);
    case ElementType::kFloat64:
      return static_cast<C>(static_cast<const double*>(from.data)[i]);
    case ElementType::kInt32:
      return static_cast<C>(static_cast<const int32_t*>(from.data)[i]);
    case ElementType::kUint8:
      return static_cast<C>(static_cast<const uint8_t*>(from.data)[i]);
    case ElementType::kInt64:
      return static_cast<C>(static_cast<const int64_t*>(from.data)[i]);
    case ElementType::kBool:
      return static_cast<C>(static_cast<const bool*>(from.data)[i]);
    case ElementType::kBfloat16:
      return static_cast<C>(
          static_cast<float>(static_cast<const bfloat16*>(from.data)[i]));
    case ElementType::kFloat16:
      return static_cast<C>(
          static_cast<float>(static_cast<const float16*>(from.data)[i]));
  }
  return C(0);
}

// Converts as the op Cast does.
template <typename C>
MUSTER_HOST_DEVICE void StoreElement(const DeviceElements& to, int64_t i,
                                     C value) {
  switch (to.type) {
    case ElementType::kFloat32:
      static_cast<float*>(to.data)[i] = ConvertNumber<float>(value);
      return;
    case ElementType::kFloat64:
      static_cast<double*>(to.data)[i] = ConvertNumber<double>(value);
      return;
    case ElementType::kInt32:
      static_cast<int32_t*>(to.data)[i] = ConvertNumber<int32_t>(value);
      return;
    case ElementType::kUint8:
      static_cast<uint8_t*>(to.data)[i] = ConvertNumber<uint8_t>(value);
      return;
    case ElementType::kInt64:
      static_cast<int64_t*>(to.data)[i] = ConvertNumber<int64_t>(value);
      return;
    case ElementType::kBool:
      static_cast<bool*>(to.data)[i] = ConvertNumber<bool>(value);
      return;
    case ElementType::kBfloat16:
      static_cast<bfloat16*>(to.data)[i] = ConvertNumber<bfloat16>(value);
      return;
    case ElementType::kFloat16:
      static_cast<float16*>(to.data)[i] = ConvertNumber<float16>(value);
      return;
  }
}

// The form of the host's StridedIndex for kernels: maps row-major positions of
// a view to offsets.
struct DeviceLayout {
  static constexpr int kRankMax = 8;

  int32_t rank;
  int64_t offset;
  int64_t extents[kRankMax];
  int64_t strides[kRankMax];

  MUSTER_HOST_DEVICE int64_t operator()(int64_t position) const {
    int64_t index = offset;
    if (rank == 0) return index;
    if ((position >> 32) == 0) {
      // Divisions in 32 bits take a fraction of the time of divisions in 64
      // bits.
      uint32_t rest = static_cast<uint32_t>(position);
      for (int axis = rank - 1; axis > 0; --axis) {
        const uint32_t extent = static_cast<uint32_t>(extents[axis]);
        index += static_cast<int64_t>(rest % extent) * strides[axis];
        rest /= extent;
      }
      return index + static_cast<int64_t>(rest) * strides[0];
    }
    for (int axis = rank - 1; axis > 0; --axis) {
      index += position % extents[axis] * strides[axis];
      position /= extents[axis];
    }
    return index + position * strides[0];
  }
};

// The reason why a kernel could not compute an element. The host composes the
// message.
enum class FaultCode : int32_t {
  kNone = 0,
  kDivisionByZero,
  kNegativeExponent,
  kIndexOutOfRange,
  kLabelOutOfRange,
  kConditionFalse,
};

// Decides whether the work of a step on one stream may change variables:
// StepGate. In the memory of the device.
struct DeviceGate {
  int32_t step;  // The number of the running step.
  // 1: variables do not change until the host opens the gate.
  int32_t is_closed;
  // In host memory: the step that closed the gate; 0 if it is open.
  int32_t* closed_by;
};

// The first data error that a kernel found. In memory that the host reads when
// the kernel is done. All zero if there is no error.
struct FaultRecord {
  int32_t code;  // A FaultCode.
  int64_t element;
  int64_t value;
  int64_t bound;  // For indices and labels: valid values are in [0, bound).
  // The first error closes this gate; later errors are not recorded. May be
  // null.
  DeviceGate* gate;
};

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_DEVICE_ELEMENTS_H_
