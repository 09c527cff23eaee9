#ifndef WORKER_STEP_RUNNER_H_
#define WORKER_STEP_RUNNER_H_

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/graph/op_registry.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/runtime/executable.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "worker/graph_cache.h"
#include "worker/session_iterator.h"
#include "worker/session_variables.h"

namespace muster {

// An argument of a closure, resolved on the worker.
using StepArgument = std::variant<std::shared_ptr<SessionIterator>, Tensor>;

// Runs steps one at a time: takes elements from the iterators and runs the
// graph. Compiles each step on its first run.
//
// Not thread-safe: each thread uses its own.
class StepRunner {
 public:
  // All pointers are borrowed and must outlive the runner.
  struct Environment {
    const OpRegistry* ops = nullptr;
    const KernelRegistry* kernels = nullptr;
    SessionVariables* variables = nullptr;
    ExecutableOptions executable;
  };

  explicit StepRunner(const Environment& environment)
      : environment_(environment) {}

  // Runs one step. May reuse the memory of `results` if it is not shared.
  //   kInvalidArgument  the arguments do not match the step's signature
  //   kOutOfRange       a dataset has ended
  //   any               from the dataset, the graph or the variables
  absl::Status Run(const std::shared_ptr<const CachedStep>& step,
                   absl::Span<const StepArgument> arguments,
                   const RunOptions& options, std::vector<Tensor>* results);

 private:
  struct Compiled {
    std::shared_ptr<const CachedStep> step;
    std::unique_ptr<Executable> executable;
    // From the iterators: elements[argument][element]. Kept to reuse their
    // memory.
    std::vector<std::vector<Element>> elements;
    std::vector<Tensor> parameters;
  };

  absl::StatusOr<Compiled*> Compile(
      const std::shared_ptr<const CachedStep>& step);
  static absl::Status TakeElements(absl::Span<const StepArgument> arguments,
                                   Compiled* compiled);
  static absl::Status FillParameters(absl::Span<const StepArgument> arguments,
                                     Compiled* compiled);

  const Environment environment_;
  absl::flat_hash_map<uint64_t, std::unique_ptr<Compiled>> compiled_;
};

}  // namespace muster

#endif  // WORKER_STEP_RUNNER_H_
