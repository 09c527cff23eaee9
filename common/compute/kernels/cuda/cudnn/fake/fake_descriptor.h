#ifndef COMMON_COMPUTE_KERNELS_CUDA_CUDNN_FAKE_FAKE_DESCRIPTOR_H_
#define COMMON_COMPUTE_KERNELS_CUDA_CUDNN_FAKE_FAKE_DESCRIPTOR_H_

#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include "common/compute/kernels/cuda/cudnn/cudnn_api.h"

namespace muster {

// A descriptor of the fake cuDNN: values of attributes.
class FakeDescriptor {
 public:
  explicit FakeDescriptor(cudnn::DescriptorType type) : type_(type) {}

  cudnn::DescriptorType type() const { return type_; }
  bool is_finalized() const { return is_finalized_; }
  void set_finalized() { is_finalized_ = true; }

  // Checks that descriptors of this type have the attribute, with values of
  // this type and number.
  cudnn::Result Set(cudnn::AttributeName attribute,
                    cudnn::AttributeType value_type, int64_t count,
                    const void* values);

  // True if all required attributes are set.
  bool IsComplete() const;

  bool Has(cudnn::AttributeName attribute) const {
    return values_.count(attribute) > 0;
  }
  cudnn::AttributeType TypeOf(cudnn::AttributeName attribute) const {
    return values_.at(attribute).type;
  }
  // Requires that the attribute is set.
  template <typename T>
  std::vector<T> List(cudnn::AttributeName attribute) const {
    const std::vector<uint8_t>& bytes = values_.at(attribute).bytes;
    std::vector<T> list(bytes.size() / sizeof(T));
    std::memcpy(list.data(), bytes.data(), list.size() * sizeof(T));
    return list;
  }
  template <typename T>
  T Get(cudnn::AttributeName attribute) const {
    return List<T>(attribute)[0];
  }
  FakeDescriptor* Descriptor(cudnn::AttributeName attribute) const {
    return Get<FakeDescriptor*>(attribute);
  }
  // The descriptors that are values of attributes.
  std::vector<FakeDescriptor*> References() const;

  // For engines, their configurations and plans: an index in kFakeEngines.
  int engine = -1;
  // For engines, their configurations and plans, and for heuristics.
  FakeDescriptor* graph = nullptr;

 private:
  struct Value {
    cudnn::AttributeType type;
    std::vector<uint8_t> bytes;
  };

  const cudnn::DescriptorType type_;
  bool is_finalized_ = false;
  std::map<cudnn::AttributeName, Value> values_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CUDA_CUDNN_FAKE_FAKE_DESCRIPTOR_H_
