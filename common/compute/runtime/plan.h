#ifndef COMMON_COMPUTE_RUNTIME_PLAN_H_
#define COMMON_COMPUTE_RUNTIME_PLAN_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/compute/kernels/cuda/step_gate.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/runtime/run_options.h"
#include "common/compute/runtime/step_arguments.h"
#include "common/compute/variables/variable_session.h"
#include "common/core/device/device.h"
#include "common/core/device/step_graphs.h"
#include "common/core/device/stream.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// The execution plan of one graph for one combination of argument shapes: the
// order of the kernels and the address of every value. PlanBuilder creates it.
// Run() loops over an array of steps.
//
// Not thread-safe.
class Plan {
 public:
  // Waits for the device if it may be running graphs of this plan.
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // True if the arguments have the types for which this plan was made.
  bool Fits(absl::Span<const Tensor> arguments) const;

  // Runs between Begin() and Commit() of `session`, which may be null if no
  // step needs it. The arguments must fit. See Executable::Run() for results
  // and errors. Returns after the device has completed the work of the step.
  absl::Status Run(absl::Span<const Tensor> arguments,
                   const RunOptions& options, VariableSession* session,
                   std::vector<Tensor>* results);

  // Maximum number of steps that have begun and are not finished.
  static constexpr int kStartedMax = 2;
  // A step that takes longer counts as hanging.
  static constexpr absl::Duration kStepTimeout = absl::Minutes(10);

  // True if Start() is possible: the host needs no result of the device before
  // the step is done, and the session lets a gate hold its updates.
  bool can_start() const { return can_start_; }

  // Takes the arguments of the next Start(), before the step's work is recorded
  // or timed. Copies arguments that are not in pinned memory. Requires that
  // fewer than kStartedMax steps have begun.
  //   errors  as StepArguments::Stage()
  absl::Status Stage(absl::Span<const Tensor> arguments);

  // Blocks until no copy uses the staged arguments, for a step that does not
  // begin.
  void CancelStaged();

  // Begins a step between Begin() and Commit() of `session`, as Run() does, and
  // returns without waiting for the device. Its arguments must have been
  // staged.
  //   errors as Run(), except errors that the device finds in the data. The
  //           step has not begun, and the device is idle.
  absl::Status Start(const RunOptions& options, VariableSession* session);

  // Sets `results` to those of the step that began last: host memory that its
  // work writes.
  void ListStartedResults(std::vector<Tensor>* results);

  // Blocks until the oldest unfinished step is done except for its updates.
  //   errors  as Run(). After an error in the data, the device is idle; this
  //           step and later ones have changed no variable.
  absl::Status Finish(VariableSession* session, std::vector<Tensor>* results);

  // Blocks until the device is idle, and discards the step that began last.
  void CancelLast(VariableSession* session);
  // Discards all started steps. Requires that the device is idle.
  void ForgetStarted();

  // Captures the work of the steps of Start(); null if steps are not captured.
  StepGraphs* graphs() const { return graphs_.get(); }

  // Size of the arenas and of the plans of subgraphs, without results.
  size_t arena_bytes() const { return arena_bytes_; }
  size_t result_bytes() const;
  int step_count() const { return static_cast<int>(steps_.size()); }

 private:
  friend class PlanBuilder;

  enum class StepKind {
    kKernel,
    kView,
    kRead,
    kGather,
    kUpdate,
    kSetLossDenominator
  };

  struct Step {
    StepKind kind = StepKind::kKernel;
    Kernel* kernel = nullptr;
    int variable = -1;  // Position in the session's uses.
    UpdateKind update_kind = UpdateKind::kAssign;
    // The stream of a kernel on a device; null on the host.
    DeviceStream* stream = nullptr;
    // True if the host reads an input, so that copies from the device must be
    // done.
    bool needs_copies = false;
    absl::Span<uint8_t> scratch;  // Of the kernel, in an arena.
    TensorType type;              // Of a view, or of a variable's value.
    absl::InlinedVector<const Tensor*, 4> inputs;  // Into slots_.
    absl::InlinedVector<Tensor*, 2> outputs;       // Into slots_.
    // References to other owners' memory that end after this step, so that a
    // store can update unshared values in place.
    absl::InlinedVector<Tensor*, 1> releases;
    // For a weight that the device computes: its value in device memory.
    const Tensor* device_weight = nullptr;
    std::string description;           // Describes the node in errors.
    const char* trace_name = nullptr;  // The node's op.
  };

  // How a result is returned.
  enum class ResultKind {
    kMove,   // A kernel writes it into separate memory.
    kShare,  // A reference to an argument, a constant or another result.
    kCopy,   // Copied from the arena or the store.
  };
  struct Result {
    ResultKind kind = ResultKind::kMove;
    int slot = -1;
    TensorType type;
    // Index in Started::host_values; -1 if the slot holds it.
    int host_value = -1;
  };

  // Resources of a step that has begun, until it is done.
  struct Started {
    std::vector<Tensor> host_values;  // Values of host_slots_.
    std::unique_ptr<StepArguments> arguments;
    std::unique_ptr<Event> done;
    int32_t number = 0;  // The step's number in the gate.
  };

  Plan() = default;

  // `is_started` is true for a step of Start().
  absl::Status RunSteps(const RunOptions& options, VariableSession* session,
                        bool is_started);
  absl::Status RunStep(Step& step, const RunOptions& options,
                       VariableSession* session);
  // Return an error if a value is not finite, unless the check is off.
  absl::Status CheckArgumentNumerics(absl::Span<const Tensor> arguments) const;
  absl::Status CheckNumerics(const Step& step) const;
  // Passes the weight on to the session without reading it on the host.
  absl::Status SetWeightOnDevice(const Step& step, VariableSession* session);
  Started& StartedAt(int i) {
    return started_[(first_started_ + i) % kStartedMax];
  }
  // Points the slots at the host values and arguments of a step.
  void UseHostValues(const Started& started);
  // Checks the weights for which RunSteps() did not wait.
  absl::Status CheckWeights() const;
  absl::Status GatherRows(Step& step, VariableSession* session);
  // Waits until the device has completed all enqueued work.
  absl::Status AwaitDevice();
  // Returns the first data error that the device found in a step, and opens the
  // gate. Requires that the device is idle.
  absl::Status FindDataError(VariableSession* session);
  void PrepareResults(std::vector<Tensor>* results);
  void FinishResults(std::vector<Tensor>* results);
  void ReleaseBorrowed();

  std::vector<TensorType> argument_types_;
  std::vector<int> argument_slots_;  // -1 if no node reads the argument.
  std::vector<std::unique_ptr<Kernel>> kernels_;
  // All values. Never grows, so addresses are stable.
  std::vector<Tensor> slots_;
  std::vector<Step> steps_;
  std::vector<Result> results_;
  // Slots that refer to memory of the caller or the store during a run.
  std::vector<int> borrowed_slots_;
  std::shared_ptr<Buffer> arena_;  // On the host.
  std::shared_ptr<Buffer> device_arena_;
  size_t arena_bytes_ = 0;
  Device* device_ = nullptr;
  DeviceStream* stream_ = nullptr;  // Null without a device.
  // Null if there is none or the session does not use it.
  StepGate* gate_ = nullptr;
  GatedSteps* gated_ = nullptr;  // Null without a gate or a session.
  bool can_start_ = false;
  std::unique_ptr<StepGraphs> graphs_;
  bool checks_numerics_ = false;
  std::vector<int> host_slots_;  // Slots in the host's arena.
  std::array<Started, kStartedMax> started_;
  // The stream of argument uploads; null if no argument is uploaded. Its
  // destructor waits for the copies before the arguments' memory is released.
  std::unique_ptr<DeviceStream> uploads_;
  int first_started_ = 0;
  int started_count_ = 0;
  std::string graph_name_;
  const char* trace_name_ = nullptr;  // Of the graph.
};

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_PLAN_H_
