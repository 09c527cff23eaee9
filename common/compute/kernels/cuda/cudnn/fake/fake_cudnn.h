#ifndef COMMON_COMPUTE_KERNELS_CUDA_CUDNN_FAKE_FAKE_CUDNN_H_
#define COMMON_COMPUTE_KERNELS_CUDA_CUDNN_FAKE_FAKE_CUDNN_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "common/compute/kernels/cuda/cudnn/cudnn_api.h"

namespace muster {

// The purposes of the fake library's engines. Heuristics return them in
// this order.
enum class FakeEngine : int {
  kNondeterministic,
  kDownConverting,
  kReducingImprecisely,
  kTensorCore,  // Rounds float32 operands to TF32.
  kCompiled,    // As all engines of attention.
  kRefusing,    // Its plans cannot be finalized.
  kHungry,      // Its workspace is larger than GPUs.
  kPlain,       // The only one of HeuristicMode::kFallback.
};

// cuDNN's backend API on simulated GPUs, for graphs of one convolution or of
// one of its gradients, and for the graphs of attention and of its gradient.
// Plans are work of a stream, on the memory of the GPU, computed in double
// precision from cuDNN's definition.
//
// It is stricter than the library. These are kBadParam:
// * attributes that a descriptor does not have, or of another type or number,
// * descriptors that are not complete, that do not fit each other, or that
//   refer to one that is destroyed or not finalized,
// * tensors whose elements overlap or leave gaps,
// * a number of the host that is in the memory of the GPU,
// * an address that is less aligned than its descriptor says, or memory that is
//   not the GPU's whose context is current.
//
// At most one exists in a process at a time, because the library's functions
// have no argument that tells libraries apart. Thread-safe.
class FakeCudnn {
 public:
  FakeCudnn();
  ~FakeCudnn();
  FakeCudnn(const FakeCudnn&) = delete;
  FakeCudnn& operator=(const FakeCudnn&) = delete;

  const cudnn::CudnnApi& api() const;

  // Makes the `after`-th call of `function` ("cudnnBackendExecute") from now on
  // return `result` and do nothing.
  void Fail(absl::string_view function, cudnn::Result result, int after = 0);

  // The number of calls so far by function.
  std::map<std::string, int64_t> counts() const;

  // The number of executions so far by engine.
  std::map<FakeEngine, int64_t> engine_counts() const;

  // Descriptors that exist.
  int64_t descriptor_count() const;

  class State;

 private:
  const std::unique_ptr<State> state_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CUDA_CUDNN_FAKE_FAKE_CUDNN_H_
