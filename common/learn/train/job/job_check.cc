#include "common/learn/train/job/job_check.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/runtime/graph_rewrites.h"
#include "common/compute/stablehlo/graph_translator.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/status_message.h"
#include "common/core/system/memory_limits.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/layer.h"
#include "common/learn/train/adapt.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/class_weights.h"
#include "common/learn/train/base/fit_options.h"
#include "common/learn/train/base/layer_optimizers.h"
#include "common/learn/train/base/step_graphs.h"
#include "common/learn/train/base/step_parts.h"
#include "common/learn/train/compiled_outputs.h"
#include "common/learn/train/job/job_callbacks.h"
#include "common/learn/train/job/job_fit.h"
#include "common/learn/train/job/step_memory.h"
#include "common/learn/train/keras/keras_names.h"
#include "common/learn/train/model.h"
#include "common/learn/train/named_inputs.h"
#include "common/learn/train/output_folders.h"
#include "common/net/cluster/task_id.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

absl::Status In(absl::string_view field, const absl::Status& status) {
  return WithMessage(status, absl::StrCat(field, ": ", status.message()));
}

// A part of the data, with its first batch.
struct Part {
  std::string field;  // "train"
  Dataset data;
  Element batch;
};

absl::StatusOr<Part> ReadPart(const Layer& model, absl::string_view field,
                              const Dataset& data) {
  Part part = {.field = std::string(field), .data = {}, .batch = {}};
  ASSIGN_OR_RETURN(part.data, InOrderOfModel(model, data));
  ASSIGN_OR_RETURN(const std::unique_ptr<DatasetIterator> iterator,
                   part.data.MakeIterator());
  ASSIGN_OR_RETURN(const bool has_batch, iterator->Next(&part.batch));
  if (has_batch) return part;
  return absl::InvalidArgumentError(
      "there are no examples; expected one at least");
}

absl::StatusOr<std::vector<Part>> ReadParts(ResolvedJob& job) {
  ASSIGN_OR_RETURN(const JobDatasets datasets, job.DatasetsInOrder());
  std::vector<Part> parts;
  const auto read = [&](absl::string_view field,
                        const Dataset& data) -> absl::Status {
    absl::StatusOr<Part> part = ReadPart(*job.layer(), field, data);
    if (!part.ok()) return In(field, part.status());
    parts.push_back(*std::move(part));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(read("train", datasets.train));
  const int64_t row_count = parts.front().batch.front().shape().dim(0);
  if (job.job().train().drop_remainder() && row_count < job.batch_size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "train: there are ", row_count, " examples, batch_size is ",
        job.batch_size(), ", and drop_remainder drops what is less"));
  }
  if (datasets.validation.has_value()) {
    RETURN_IF_ERROR(read("validation", *datasets.validation));
  }
  if (datasets.test.has_value()) {
    RETURN_IF_ERROR(read("test", *datasets.test));
  }
  return parts;
}

absl::Status CheckFolders(const ResolvedJob& job) {
  ASSIGN_OR_RETURN(const auto callbacks, BuildJobCallbacks(job.job()));
  std::vector<Callback*> borrowed;
  for (const auto& callback : callbacks) borrowed.push_back(callback.get());
  std::vector<std::string> folders = OutputFoldersOf(borrowed);
  folders.push_back(job.run_dir().empty() ? "." : job.run_dir());
  const std::string& recovery_dir =
      job.job().strategy().parameter_server().recovery_dir();
  if (!recovery_dir.empty()) folders.push_back(recovery_dir);
  return CheckWritable(folders);
}

// The steps of a job as graphs, and the optimizers of its weights.
class Steps {
 public:
  static absl::StatusOr<Steps> Trace(ResolvedJob& job,
                                     const std::vector<Part>& parts) {
    Steps steps;
    // Layers that are computed from data get shapes from one batch, before the
    // model is built.
    RETURN_IF_ERROR(Adapt(job.layer(), parts.front().data.Take(1)));
    // Gives the layers their names.
    const Model model(job.layer());
    ASSIGN_OR_RETURN(CompileOptions options,
                     job.BuildCompileOptions(/*seed=*/0));
    RETURN_IF_ERROR(LookUpNames(&options));
    steps.optimizers_ =
        ModelOptimizers(options.optimizer, options.layer_optimizers);
    StepParts step = {.layer = job.layer(),
                      .clipping_of = steps.optimizers_.clipping()};
    ASSIGN_OR_RETURN(step.outputs, CompileOutputs(*job.layer(), options));
    for (const Part& part : parts) {
      const bool trains = part.field == "train";
      step.class_weights =
          trains ? BuildJobFitOptions(job.job()).class_weight : ClassWeights();
      absl::StatusOr<TracedStep> traced =
          trains ? TraceTrainStep(step, part.data.element_types())
                 : TraceEvaluateStep(step, part.data.element_types());
      if (!traced.ok()) return In(part.field, traced.status());
      if (job.job().strategy().has_tpu()) {
        const absl::Status translatable =
            CheckTranslatable(DropDeadNodes(traced->graph, BuiltinOps()));
        if (!translatable.ok()) return In(part.field, translatable);
      }
      steps.graphs_.push_back(std::move(traced->graph));
    }
    RETURN_IF_ERROR(steps.optimizers_.CheckMatch(job.layer()->weights()));
    return steps;
  }

  // The bytes of the values of a step on `row_count` examples of a part.
  absl::StatusOr<int64_t> Measure(const std::vector<Part>& parts, size_t index,
                                  int64_t row_count) const {
    std::vector<TensorType> types;
    for (const Tensor& tensor : parts[index].batch) {
      types.push_back(tensor.type());
      types.back().shape.set_dim(0, row_count);
    }
    absl::StatusOr<int64_t> bytes = MeasureStep(graphs_[index], types);
    if (bytes.ok()) return bytes;
    return In(parts[index].field, bytes.status());
  }

  const ModelOptimizers& optimizers() const { return optimizers_; }

 private:
  ModelOptimizers optimizers_;
  std::vector<Graph> graphs_;  // One for each part.
};

// The bytes of sources that keep all examples in memory.
absl::StatusOr<int64_t> TableBytes(const proto::JobData& description,
                                   const Part& part) {
  const bool is_table = description.has_csv() || description.has_idx() ||
                        description.has_npy() || description.has_mnist();
  if (!is_table) return 0;
  ASSIGN_OR_RETURN(const int64_t batch_count, part.data.CountElements());
  int64_t bytes = 0;
  for (const Tensor& tensor : part.batch) {
    bytes += static_cast<int64_t>(tensor.size_bytes());
  }
  return bytes * batch_count;
}

// What the tasks of a job need.
struct Needs {
  VariableMemory variables;
  int64_t train_bytes = 0;     // Of one training step of one replica.
  int64_t evaluate_bytes = 0;  // Of one step of validation or test.
  int64_t table_bytes = 0;
};

struct TaskNeed {
  std::string task;
  int64_t bytes = 0;
};

int64_t ReplicaCountOf(const proto::JobStrategy& strategy) {
  if (strategy.has_mirrored()) return strategy.mirrored().devices_size();
  if (strategy.has_multi_worker_mirrored()) {
    return strategy.multi_worker_mirrored().devices_size();
  }
  if (strategy.has_tpu()) return strategy.tpu().cpu_device_count();
  return 1;
}

// A process that trains `replica_count` replicas with copies of the variables.
int64_t TrainerBytes(const Needs& needs, int64_t replica_count) {
  const VariableMemory& variables = needs.variables;
  const int64_t replica_bytes = variables.weight_bytes + variables.slot_bytes +
                                variables.trainable_bytes + needs.train_bytes;
  return replica_count * replica_bytes + needs.table_bytes;
}

std::vector<TaskNeed> NeedsByTask(const Needs& needs,
                                  const ClusterConfig& config,
                                  int64_t replica_count, int ps_copies) {
  const VariableMemory& variables = needs.variables;
  const int64_t state_bytes =
      (variables.weight_bytes + variables.slot_bytes) * ps_copies;
  if (config.IsAlone() && config.task.type != TaskType::kEvaluator) {
    return {{"this process", TrainerBytes(needs, replica_count)}};
  }
  std::vector<TaskNeed> tasks;
  if (config.HasParameterServers()) {
    tasks = {
        {"chief",
         variables.weight_bytes + needs.table_bytes + needs.evaluate_bytes},
        {"each worker", variables.weight_bytes + variables.trainable_bytes +
                            needs.train_bytes + needs.table_bytes},
        {"each ps",
         state_bytes / std::max(1, config.cluster.task_count(TaskType::kPs))}};
  } else {
    tasks = {{"each worker", TrainerBytes(needs, replica_count)}};
  }
  if (config.task.type == TaskType::kEvaluator) {
    tasks.push_back(
        {"evaluator",
         variables.weight_bytes + needs.evaluate_bytes + needs.table_bytes});
  }
  return tasks;
}

std::string Mebibytes(int64_t bytes) {
  return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1 << 20));
}

void WriteNeeds(const std::vector<TaskNeed>& tasks, std::ostream& output) {
  const auto available = static_cast<int64_t>(AvailableMemoryBytes());
  output
      << "memory for variables, a step and tables of data (a process may use "
      << Mebibytes(available) << " on this machine):\n";
  for (const TaskNeed& task : tasks) {
    output << absl::StrFormat(
        "  %-12s  %s%s\n", task.task, Mebibytes(task.bytes),
        task.bytes > available ? "  <- more than there is" : "");
  }
  output << std::flush;
}

// Workers that train in sync.
int64_t WorkerCountOf(const ClusterConfig& config) {
  if (config.IsAlone() || config.HasParameterServers()) return 1;
  return std::max(1, config.cluster.task_count(TaskType::kChief) +
                         config.cluster.task_count(TaskType::kWorker));
}

}  // namespace

absl::Status CheckJob(ResolvedJob& job, const ClusterConfig& config,
                      std::ostream& output) {
  RETURN_IF_ERROR(job.OpenData());
  for (const std::string& line : job.UnusedColumns()) output << line << "\n";
  RETURN_IF_ERROR(CheckFolders(job));
  ASSIGN_OR_RETURN(const std::vector<Part> parts, ReadParts(job));
  ASSIGN_OR_RETURN(const Steps steps, Steps::Trace(job, parts));
  const int64_t replica_count =
      std::max<int64_t>(1, ReplicaCountOf(job.job().strategy()));
  const int64_t row_count = parts.front().batch.front().shape().dim(0);
  const int64_t replica_rows =
      std::max<int64_t>(1, row_count / (replica_count * WorkerCountOf(config)));
  Needs needs;
  ASSIGN_OR_RETURN(needs.variables, MeasureVariables(job.layer()->weights(),
                                                     steps.optimizers()));
  ASSIGN_OR_RETURN(needs.train_bytes, steps.Measure(parts, 0, replica_rows));
  for (size_t i = 1; i < parts.size(); ++i) {
    ASSIGN_OR_RETURN(
        const int64_t bytes,
        steps.Measure(parts, i, parts[i].batch.front().shape().dim(0)));
    needs.evaluate_bytes = std::max(needs.evaluate_bytes, bytes);
  }
  ASSIGN_OR_RETURN(needs.table_bytes,
                   TableBytes(job.job().train(), parts.front()));
  const auto& servers = job.job().strategy().parameter_server();
  const int ps_copies = std::max(1, servers.ps_copies());
  if (servers.synchronous()) {  // The sums of the gradients of an update.
    needs.variables.slot_bytes += needs.variables.trainable_bytes;
  }
  WriteNeeds(NeedsByTask(needs, config, replica_count, ps_copies), output);
  return absl::OkStatus();
}

}  // namespace muster
