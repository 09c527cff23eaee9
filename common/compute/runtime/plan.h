#ifndef COMMON_COMPUTE_RUNTIME_PLAN_H_
#define COMMON_COMPUTE_RUNTIME_PLAN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/runtime/run_options.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// One graph for one combination of argument shapes, down to addresses: which
// kernel runs when, and where every value lies. Made by PlanBuilder; running it
// is a walk over an array.
//
// Not thread-safe.
class Plan {
 public:
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // Whether the arguments have the types that this plan is for.
  bool Fits(absl::Span<const Tensor> arguments) const;

  // Between Begin() and Commit() of `session`, which may be null when no step
  // needs it. The arguments fit. Executable::Run() tells of results and errors.
  absl::Status Run(absl::Span<const Tensor> arguments,
                   const RunOptions& options, VariableSession* session,
                   std::vector<Tensor>* results);

  // What lies in the arena; results come on top.
  size_t arena_bytes() const { return arena_bytes_; }
  int step_count() const { return static_cast<int>(steps_.size()); }

 private:
  friend class PlanBuilder;

  enum class StepKind { kKernel, kView, kRead, kGather, kUpdate, kWeigh };

  struct Step {
    StepKind kind = StepKind::kKernel;
    Kernel* kernel = nullptr;
    int variable = -1;  // Position in the session's uses.
    UpdateKind update_kind = UpdateKind::kAssign;
    absl::Span<uint8_t> scratch;  // Of the kernel, in the arena.
    TensorType type;  // Of a view, or of what comes from a variable.
    absl::InlinedVector<const Tensor*, 4> inputs;  // Into slots_.
    absl::InlinedVector<Tensor*, 2> outputs;       // Into slots_.
    // Handles on memory of others that nobody needs after this step. A store
    // updates in place what nobody else holds.
    absl::InlinedVector<Tensor*, 1> releases;
    std::string description;  // Of the node, for errors.
  };

  // How a result leaves the plan.
  enum class ResultKind {
    kMove,   // A kernel writes it into memory of its own.
    kShare,  // Another handle on an argument, a constant or another result.
    kCopy,   // Lies in the arena or in the store.
  };
  struct Result {
    ResultKind kind = ResultKind::kMove;
    int slot = -1;
    TensorType type;
  };

  Plan() = default;

  absl::Status RunStep(Step& step, const RunOptions& options,
                       VariableSession* session);
  void PrepareResults(std::vector<Tensor>* results);
  void FinishResults(std::vector<Tensor>* results);
  void ReleaseBorrowed();

  std::vector<TensorType> argument_types_;
  std::vector<int> argument_slots_;  // -1 where nobody reads the argument.
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<Tensor> slots_;  // Every value; never grows, so addresses hold.
  std::vector<Step> steps_;
  std::vector<Result> results_;
  // Slots that hold memory of a caller or a store during a run.
  std::vector<int> borrowed_slots_;
  std::shared_ptr<Buffer> arena_;
  size_t arena_bytes_ = 0;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_PLAN_H_
