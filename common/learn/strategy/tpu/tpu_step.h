#ifndef COMMON_LEARN_STRATEGY_TPU_TPU_STEP_H_
#define COMMON_LEARN_STRATEGY_TPU_TPU_STEP_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/variables/variable_session.h"
#include "common/core/pjrt/pjrt_client.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/tpu/tpu_system.h"
#include "common/learn/strategy/tpu/tpu_variable_store.h"

namespace muster {

// A step on all devices of a TpuSystem. Each shape of batches, each number of
// steps that run in one execution, and each structure of the optimizer's
// updates has a program, which is compiled when it is needed first.
//
// The replicas divide the rows of a batch equally. If the rows of a batch are
// no multiple of the number of replicas, every replica computes the whole
// batch, and the gradients are not reduced: the result is that of one device.
//
// Not thread-safe.
class TpuStep {
 public:
  enum class Results {
    kSummed,        // Over the replicas.
    kConcatenated,  // Their rows, in the order of the replicas.
  };

  // `variables` is borrowed and outlives the result.
  //   kUnimplemented  as CheckTranslatable()
  //   kNotFound       the store has no such variable
  static absl::StatusOr<std::unique_ptr<TpuStep>> Create(
      const Graph& step, std::shared_ptr<TpuSystem> system,
      TpuVariableStore* variables, Results results);

  // True if the step updates a variable.
  bool changes_variables() const;

  // Begins steps in one execution, one for each element of `elements`, whose
  // tensors have the same types, and returns when the work is enqueued. The
  // arguments are kept until it is done. The seed of each step is 1 higher than
  // that of the one before. Requires that their number is at most
  // GroupSize().
  //   kInvalidArgument  the arguments do not fit the graph's parameters
  //   others            as MakeStepProgram(), PjrtClient::Compile() and
  //                     TpuVariableStore::RunSteps()
  absl::Status Start(absl::Span<const Element> elements, uint64_t step_seed);

  // Returns how many of the next `count_max` steps may run in one execution.
  int GroupSize(int count_max) {
    return count_max == 1 ? 1 : variables_.EqualSteps(uses_, count_max);
  }

  // Waits for the oldest unfinished execution and returns the results of its
  // steps.
  //   errors  of the program
  absl::StatusOr<std::vector<std::vector<Tensor>>> Finish();

  // Executions, and their steps, that have begun and are not finished.
  int started_count() const { return static_cast<int>(started_.size()); }
  int started_step_count() const;
  int program_count() const { return static_cast<int>(programs_.size()); }

 private:
  using Buffers = TpuVariableStore::Buffers;

  struct Started {
    int step_count = 1;
    bool divides_batch = false;
    std::vector<Buffers> results;    // By replica.
    std::vector<Buffers> arguments;  // By replica; kept until it is done.
  };

  TpuStep(Graph step, std::vector<VariableUse> uses,
          std::shared_ptr<TpuSystem> system, TpuVariableStore* variables,
          Results results);

  bool Divides(const Element& element) const;
  // Copies the parts of the arguments to the devices, by replica.
  absl::StatusOr<std::vector<Buffers>> CopyArguments(
      absl::Span<const Element> elements, bool divides_batch) const;
  absl::StatusOr<const PjrtExecutable*> FindProgram(
      const Element& element, const Started& step,
      const TpuVariableStore::StepState& state);
  absl::StatusOr<std::vector<Buffers>> Execute(
      const PjrtExecutable& program, const TpuVariableStore::StepState& state,
      uint64_t step_seed, Started* step) const;

  const Graph step_;
  const std::vector<VariableUse> uses_;
  const std::shared_ptr<TpuSystem> system_;
  TpuVariableStore& variables_;
  const Results results_;
  absl::flat_hash_map<std::string, std::unique_ptr<PjrtExecutable>> programs_;
  std::deque<Started> started_;  // The oldest one first.
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_TPU_TPU_STEP_H_
