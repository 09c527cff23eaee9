#include "common/learn/train/predictor.h"

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/compute/graph/graph.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/runtime/executable.h"
#include "common/compute/runtime/run_options.h"
#include "common/compute/variables/local_variable_store.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/weight.h"
#include "common/learn/train/base/step_graphs.h"
#include "common/learn/train/load_model.h"
#include "common/learn/train/model.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

absl::StatusOr<std::unique_ptr<LocalVariableStore>> CopyWeights(
    const Model& model) {
  const std::vector<Weight> weights = model.weights();
  ASSIGN_OR_RETURN(const std::vector<Tensor> values, model.GetWeights());
  auto store = std::make_unique<LocalVariableStore>();
  for (size_t i = 0; i < weights.size(); ++i) {
    proto::VariableSpec spec = weights[i].spec();
    spec.mutable_initializer()->mutable_constant();
    RETURN_IF_ERROR(store->Create(spec));
    RETURN_IF_ERROR(store->Assign(spec.name(), values[i]));
  }
  return store;
}

absl::Status CheckPredictorOptions(const PredictorOptions& options) {
  if (options.thread_count >= 1 && options.kept_count >= 1) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "Predictor: thread_count is ", options.thread_count,
      " and kept_count is ", options.kept_count, "; both must be at least 1"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Predictor>> Predictor::Load(
    const std::string& path, const PredictorOptions& options) {
  ASSIGN_OR_RETURN(const Model model, LoadModel(path, {.compile = false}));
  return Of(model, options);
}

absl::StatusOr<std::unique_ptr<Predictor>> Predictor::Of(
    const Model& model, const PredictorOptions& options) {
  RETURN_IF_ERROR(CheckPredictorOptions(options));
  const std::vector<TensorType> inputs = model.layer()->input_types();
  if (inputs.empty()) {
    return absl::InvalidArgumentError(
        "Predictor: the model does not begin with Input(), so the types of its "
        "inputs are unknown");
  }
  if (!model.layer()->states().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Predictor: ", model.layer()->states().front().name(),
        " is carried from batch to batch (stateful), and calls of a Predictor "
        "have no order; use Model::Predict()"));
  }
  ASSIGN_OR_RETURN(Graph graph, TraceForward(model.layer(), inputs));
  ASSIGN_OR_RETURN(std::unique_ptr<LocalVariableStore> variables,
                   CopyWeights(model));
  auto predictor = absl::WrapUnique(
      new Predictor(std::move(graph), inputs, std::move(variables), options));
  // Compiles now, so that errors are reported here and the first call is fast.
  ASSIGN_OR_RETURN(std::unique_ptr<Executable> executable, predictor->Take());
  predictor->Keep(std::move(executable));
  return predictor;
}

Predictor::Predictor(Graph graph, std::vector<TensorType> input_types,
                     std::unique_ptr<LocalVariableStore> variables,
                     const PredictorOptions& options)
    : graph_(std::move(graph)),
      input_types_(std::move(input_types)),
      variables_(std::move(variables)),
      options_(options) {}

Predictor::~Predictor() = default;

absl::StatusOr<std::unique_ptr<Executable>> Predictor::Take() const {
  {
    const absl::MutexLock lock(&mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Executable> executable = std::move(idle_.back());
      idle_.pop_back();
      return executable;
    }
  }
  return Executable::Compile(graph_, BuiltinOps(), CpuKernels(),
                             variables_.get(),
                             {.intra_op_thread_count = options_.thread_count});
}

void Predictor::Keep(std::unique_ptr<Executable> executable) const {
  const absl::MutexLock lock(&mutex_);
  if (static_cast<int>(idle_.size()) < options_.kept_count) {
    idle_.push_back(std::move(executable));
  }
}

absl::StatusOr<std::vector<Tensor>> Predictor::Predict(
    const Element& inputs) const {
  ASSIGN_OR_RETURN(std::unique_ptr<Executable> executable, Take());
  std::vector<Tensor> results;
  RETURN_IF_ERROR(executable->Run(inputs, RunOptions(), &results));
  Keep(std::move(executable));
  return results;
}

}  // namespace muster
