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
  kTensorCore,      // Rounds float32 operands to TF32.
  kCompiled,        // Compiled at run time, like all engines of attention.
  kUnsupported,     // Its plans cannot be finalized.
  kLargeWorkspace,  // Its workspace exceeds the memory of GPUs.
  kPlain,           // The only one of HeuristicMode::kFallback.
};

// cuDNN's backend API on simulated GPUs, for graphs of one convolution or of
// one of its gradients, and for the graphs of attention and of its gradient.
// Plans run as work of a stream on the memory of the GPU and are computed in
// double precision from cuDNN's definition.
//
// The fake is stricter than the library. It returns kBadParam for:
// * attributes that a descriptor does not have, or that have another type or
//   count,
// * descriptors that are incomplete, inconsistent, or refer to a descriptor
//   that is destroyed or not finalized,
// * tensors whose elements overlap or leave gaps,
// * a host number whose address is in the memory of the GPU,
// * an address with less alignment than its descriptor states, or memory that
//   does not belong to the GPU of the current context.
//
// A process may have at most one at a time, because the library's functions
// have no argument that identifies the library. Thread-safe.
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

  // The number of existing descriptors.
  int64_t descriptor_count() const;

  class State;

 private:
  const std::unique_ptr<State> state_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CUDA_CUDNN_FAKE_FAKE_CUDNN_H_
