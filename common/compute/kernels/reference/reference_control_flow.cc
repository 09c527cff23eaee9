#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/kernels/reference/elements.h"
#include "common/compute/kernels/reference/register_reference_kernels.h"
#include "common/core/base/status_macros.h"

// Cond, Scan and While.
namespace muster::internal {
namespace {

// A loop that takes longer counts as hanging.
constexpr std::chrono::minutes kLoopTimeout(10);

// Drops tensors that share memory with other tensors: a variable is updated in
// place only if no tensor refers to its memory. Of several results with the
// same memory, the first one is kept.
void ReleaseShared(std::vector<Tensor>* tensors) {
  for (auto tensor = tensors->rbegin(); tensor != tensors->rend(); ++tensor) {
    if (!tensor->IsSoleOwner()) *tensor = Tensor();
  }
}

class CondKernel : public Kernel {
 public:
  explicit CondKernel(const KernelSpec& spec)
      : subgraphs_(spec.subgraphs), operands_(spec.inputs.size() - 1) {}

  absl::Status Run(const KernelArguments& arguments) override {
    const int branch = arguments.inputs[0]->flat<bool>()[0] ? 0 : 1;
    for (size_t i = 0; i < operands_.size(); ++i) {
      operands_[i] = *arguments.inputs[i + 1];
    }
    std::vector<Tensor>& results = results_[branch];
    const absl::Status status =
        subgraphs_[branch]->Run(operands_, arguments, &results);
    for (size_t i = 0; status.ok() && i < results.size(); ++i) {
      CopyElements(results[i], arguments.outputs[i]);
    }
    ReleaseShared(&operands_);
    ReleaseShared(&results);
    return status;
  }

 private:
  const std::vector<std::shared_ptr<CompiledSubgraph>> subgraphs_;
  std::vector<Tensor> operands_;
  std::vector<Tensor> results_[2];
};

// Base of Scan and While, which pass a carry through a subgraph.
class LoopKernel : public Kernel {
 public:
  LoopKernel(const KernelSpec& spec, int input_count)
      : carry_count_(
            static_cast<int>(spec.attributes.GetOr<int64_t>("carry_count", 0))),
        input_count_(input_count),
        body_(spec.subgraphs.back()),
        operands_(spec.inputs.size()) {}

  absl::Status Run(const KernelArguments& arguments) override {
    for (size_t i = 0; i < operands_.size(); ++i) {
      operands_[i] = *arguments.inputs[i];
    }
    deadline_ = std::chrono::steady_clock::now() + kLoopTimeout;
    absl::Status status = RunIterations(arguments);
    for (int i = 0; status.ok() && i < carry_count_; ++i) {
      CopyElements(operands_[i], arguments.outputs[i]);
    }
    // The carry may refer to the results of an iteration.
    for (Tensor& operand : operands_) operand = Tensor();
    ReleaseShared(&results_[0]);
    ReleaseShared(&results_[1]);
    return status;
  }

 protected:
  virtual absl::Status RunIterations(const KernelArguments& arguments) = 0;

  // Runs the body and makes its results the next carry.
  absl::Status RunIteration(const KernelArguments& arguments) {
    if (std::chrono::steady_clock::now() > deadline_) {
      return absl::DeadlineExceededError(absl::StrCat(
          "the loop has run for ", kLoopTimeout.count(), " minutes"));
    }
    // The carry is in the results of the previous iteration, which must not be
    // overwritten.
    std::swap(results_[0], results_[1]);
    RETURN_IF_ERROR(body_->Run(operands_, arguments, &results_[0]));
    for (int i = 0; i < carry_count_; ++i) operands_[i] = results_[0][i];
    return absl::OkStatus();
  }

  // Keeps the carry before iteration `row` in the outputs from `first` on.
  void KeepCarry(const KernelArguments& arguments, int64_t row, size_t first) {
    for (int i = 0; i < carry_count_; ++i) {
      Tensor to = arguments.outputs[first + i]->SliceRows(row, row + 1);
      CopyElements(operands_[i], &to);
    }
  }

  const int carry_count_;
  const int input_count_;
  const std::shared_ptr<CompiledSubgraph> body_;
  // Arguments of the next iteration: the carry, the rows, and captured values.
  std::vector<Tensor> operands_;
  std::vector<Tensor> results_[2];  // Of the last two iterations, latest first.
  std::chrono::steady_clock::time_point deadline_;
};

class ScanKernel : public LoopKernel {
 public:
  explicit ScanKernel(const KernelSpec& spec)
      : LoopKernel(spec, static_cast<int>(
                             spec.attributes.GetOr<int64_t>("input_count", 0))),
        is_reverse_(spec.attributes.GetOr("reverse", false)),
        keeps_steps_(spec.attributes.GetOr("keep_steps", false)),
        length_(input_count_ > 0
                    ? spec.inputs[carry_count_].shape.dim(0)
                    : spec.attributes.GetOr<int64_t>("length", 0)) {
    for (int i = 0; i < input_count_; ++i) {
      const TensorType& type = spec.inputs[carry_count_ + i];
      Shape row;
      for (const int64_t dim : type.shape.dims().subspan(1)) row.AddDim(dim);
      row_types_.push_back({type.dtype, row});
    }
    rows_.resize(input_count_);
  }

 private:
  absl::Status RunIterations(const KernelArguments& arguments) override {
    const size_t output_count = arguments.outputs.size();
    const size_t first_kept = output_count - (keeps_steps_ ? carry_count_ : 0);
    for (int64_t i = 0; i < length_; ++i) {
      const int64_t row = is_reverse_ ? length_ - 1 - i : i;
      if (keeps_steps_) KeepCarry(arguments, row, first_kept);
      TakeRows(arguments, row);
      RETURN_IF_ERROR(RunIteration(arguments));
      for (size_t k = carry_count_; k < first_kept; ++k) {
        Tensor to = arguments.outputs[k]->SliceRows(row, row + 1);
        CopyElements(results_[0][k], &to);
      }
    }
    return absl::OkStatus();
  }

  // Copies rows, because memory in the middle of a tensor is not aligned.
  void TakeRows(const KernelArguments& arguments, int64_t row) {
    for (int i = 0; i < input_count_; ++i) {
      const int position = carry_count_ + i;
      operands_[position] = Tensor();
      // The carry may refer to a row of an earlier iteration.
      if (!rows_[i].IsSoleOwner()) {
        rows_[i] = Tensor(row_types_[i].dtype, row_types_[i].shape);
      }
      CopyElements(arguments.inputs[position]->SliceRows(row, row + 1),
                   &rows_[i]);
      operands_[position] = rows_[i];
    }
  }

  const bool is_reverse_;
  const bool keeps_steps_;
  const int64_t length_;
  std::vector<TensorType> row_types_;
  std::vector<Tensor> rows_;
};

class WhileKernel : public LoopKernel {
 public:
  explicit WhileKernel(const KernelSpec& spec)
      : LoopKernel(spec, /*input_count=*/0),
        condition_(spec.subgraphs[0]),
        iterations_max_(
            spec.attributes.GetOr<int64_t>("maximum_iterations", -1)),
        keeps_steps_(spec.attributes.GetOr("keep_steps", false)) {}

 private:
  absl::Status RunIterations(const KernelArguments& arguments) override {
    int64_t iterations = 0;
    while (iterations != iterations_max_) {
      RETURN_IF_ERROR(
          condition_->Run(operands_, arguments, &condition_result_));
      const bool goes_on = condition_result_[0].flat<bool>()[0];
      ReleaseShared(&condition_result_);
      if (!goes_on) break;
      if (keeps_steps_) KeepCarry(arguments, iterations, carry_count_ + 1);
      RETURN_IF_ERROR(RunIteration(arguments));
      ++iterations;
    }
    if (!keeps_steps_) return absl::OkStatus();
    arguments.outputs[carry_count_]->mutable_flat<int64_t>()[0] = iterations;
    for (int i = 0; i < carry_count_; ++i) {
      Tensor rest = arguments.outputs[carry_count_ + 1 + i]->SliceRows(
          iterations, iterations_max_);
      if (rest.size_bytes() > 0) {
        std::memset(rest.mutable_raw_data(), 0, rest.size_bytes());
      }
    }
    return absl::OkStatus();
  }

  const std::shared_ptr<CompiledSubgraph> condition_;
  const int64_t iterations_max_;
  const bool keeps_steps_;
  std::vector<Tensor> condition_result_;
};

template <typename KernelType>
auto MakeWithSubgraphs(size_t subgraph_count) {
  return [subgraph_count](const KernelSpec& spec) -> KernelOr {
    // Needs compiled subgraphs, which only the host has: devices run subgraphs
    // on the host.
    if (spec.subgraphs.size() != subgraph_count) return UnsupportedTypes(spec);
    return std::make_unique<KernelType>(spec);
  };
}

}  // namespace

void RegisterControlFlowKernels(KernelRegistry* registry) {
  RegisterReference(registry, "Cond", MakeWithSubgraphs<CondKernel>(2));
  RegisterReference(registry, "Scan", MakeWithSubgraphs<ScanKernel>(1));
  RegisterReference(registry, "While", MakeWithSubgraphs<WhileKernel>(2));
}

}  // namespace muster::internal
