#ifndef COMMON_COMPUTE_KERNELS_CUDA_CUDNN_FAKE_FAKE_ATTENTION_H_
#define COMMON_COMPUTE_KERNELS_CUDA_CUDNN_FAKE_FAKE_ATTENTION_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/compute/kernels/cuda/cudnn/cudnn_api.h"
#include "common/compute/kernels/cuda/cudnn/fake/fake_convolution.h"
#include "common/compute/kernels/cuda/cudnn/fake/fake_descriptor.h"

namespace muster {

// A graph of products, elementwise operations, reductions and reshapes,
// computed one operation after the other.
class FakeAttention {
 public:
  // A tensor of the graph.
  struct Operand {
    FakeTensor tensor;
    bool is_virtual = false;
    bool is_by_value = false;
    bool is_written = false;  // True if an operation writes it.
    float value = 0;          // If is_by_value.
  };

  // Returns nothing if the operations are not, in order, those of attention or
  // of its gradient; if extents or types are inconsistent; if a tensor is
  // written twice, or a virtual one is read before it is written; or if the
  // operands of a product do not have the same 16-bit type.
  static std::optional<FakeAttention> Of(
      const std::vector<FakeDescriptor*>& operations);

  // By unique id.
  std::map<int64_t, Operand>& operands() { return operands_; }

  // Computes the tensors in memory. Virtual tensors are rounded to their types.
  void Compute();

 private:
  struct Step {
    cudnn::DescriptorType type = cudnn::DescriptorType::kMatMulOperation;
    int mode = 0;  // A PointwiseMode or a ReductionOperator.
    int64_t a = 0;
    int64_t b = -1;  // -1: absent.
    int64_t t = -1;  // -1: absent.
    int64_t y = 0;
    int64_t axis = 0;  // For kIndex.
  };
  // Elements in row order of the four axes.
  using Elements = std::vector<double>;

  // Returns the id; nothing if the descriptor is not a valid tensor.
  std::optional<int64_t> AddOperand(const FakeDescriptor& descriptor);
  bool AddStep(const FakeDescriptor& operation);
  bool DoesStepFit(const Step& step) const;
  bool IsKnown() const;

  Elements Load(int64_t id) const;
  void Store(int64_t id, const Elements& elements);
  Elements Run(const Step& step) const;
  Elements MatMul(const Step& step) const;
  Elements Pointwise(const Step& step) const;
  Elements Reduce(const Step& step) const;
  Elements Reshape(const Step& step) const;

  std::map<int64_t, Operand> operands_;
  std::vector<Step> steps_;
  std::map<int64_t, Elements> virtual_elements_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CUDA_CUDNN_FAKE_FAKE_ATTENTION_H_
