#ifndef COMMON_COMPUTE_KERNELS_CUDA_CUDNN_EXECUTION_PLAN_H_
#define COMMON_COMPUTE_KERNELS_CUDA_CUDNN_EXECUTION_PLAN_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/kernels/cuda/cudnn/cudnn_api.h"
#include "common/compute/kernels/cuda/cudnn/descriptor.h"
#include "common/core/tensor/dtype.h"

namespace muster {

// The GPU for which plans are made.
struct CudnnTarget {
  const cudnn::CudnnApi* api = nullptr;
  // The handle of a GPU of this process.
  cudnn::Handle* handle = nullptr;
  // Without a handle: the properties of a GPU that this machine may not have.
  const CudnnDescriptor* device_properties = nullptr;
};

// Returns cuDNN's equivalent of a floating type, int32 or bool.
cudnn::CudnnDataType CudnnDataTypeOf(DType dtype);

// The extents or the strides of a tensor, or a position in it, in cuDNN's order
// of axes.
using CudnnAxes = std::array<int64_t, 4>;

// A computation of cuDNN: a graph of operations.
struct CudnnGraph {
  // A number that is not in the memory of the GPU.
  struct Scalar {
    int64_t id;  // The unique id of its tensor.
    float value;
  };

  // All are finalized. The last one is the graph, which refers to the others.
  std::vector<CudnnDescriptor> descriptors;
  std::vector<int64_t> operand_ids;  // The unique ids of tensors in memory.
  std::vector<Scalar> scalars;
};

// Finalizes a graph of `operations`, which are elements of `descriptors`, and
// appends it to `descriptors`.
//   errors  as CudnnStatus()
absl::Status FinishCudnnGraph(const CudnnTarget& target,
                              absl::Span<const cudnn::Descriptor> operations,
                              std::vector<CudnnDescriptor>* descriptors);

// Restrictions on engines.
struct CudnnEngineRules {
  std::string what;  // "a convolution", for errors.
  // False if operands must not be rounded, which tensor cores do.
  bool allows_tensor_cores = true;
  // Engines that need more are not used, because a step's workspace is part of
  // its arena.
  int64_t workspace_bytes_max = int64_t{1} << 30;
};

// An execution plan with its engine. Owns the descriptors to which it refers.
class CudnnPlan {
 public:
  // Addresses of operands and of the workspace are multiples of this.
  static constexpr int64_t kAlignmentBytes = 16;

  // Takes the first engine of cuDNN's heuristics that the rules allow, whose
  // results are reproducible, and that adds in float32 or a wider type. Takes
  // an engine that must be compiled when the plan is made, which takes up to
  // seconds, only if there is no other.
  //   kUnimplemented  there is no such engine
  //   others          as CudnnStatus()
  static absl::StatusOr<CudnnPlan> Create(const CudnnTarget& target,
                                          CudnnGraph graph,
                                          const CudnnEngineRules& rules);

  const CudnnDescriptor& plan() const { return plan_; }
  absl::Span<const int64_t> operand_ids() const { return graph_.operand_ids; }
  absl::Span<const CudnnGraph::Scalar> scalars() const {
    return graph_.scalars;
  }
  size_t workspace_bytes() const { return workspace_bytes_; }
  // True if the engine was compiled for this plan.
  bool was_compiled() const { return was_compiled_; }

 private:
  CudnnPlan(CudnnGraph graph, CudnnDescriptor plan, size_t workspace_bytes,
            bool was_compiled)
      : graph_(std::move(graph)),
        plan_(std::move(plan)),
        workspace_bytes_(workspace_bytes),
        was_compiled_(was_compiled) {}

  CudnnGraph graph_;
  CudnnDescriptor plan_;
  size_t workspace_bytes_;
  bool was_compiled_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CUDA_CUDNN_EXECUTION_PLAN_H_
