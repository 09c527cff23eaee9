#ifndef COMMON_LEARN_TRAIN_JOB_JOB_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/job/resolved_job.h"
#include "common/learn/train/run_summary.h"

namespace muster {

namespace proto {
class TrainingJob;
}  // namespace proto

// Makes the strategy that a job asks for. Called once, after the job and its
// data have been found to make sense.
using StrategyFactory = std::function<absl::StatusOr<std::unique_ptr<Strategy>>(
    const ResolvedJob& job)>;

// Returns a factory of the strategies of one process. A job without a strategy
// gets the default one: see BuildLocalStrategy().
StrategyFactory DefaultStrategyFactory(int thread_count = 0);

struct RunJobOptions {
  std::string job_file = "";  // For summary.json.
  // Where summary.json is written; made if need be.
  std::string run_dir = "";
  // Of processes that train in sync: whether this is the one that writes. Its
  // folders are made before any wait for other tasks.
  bool is_chief = true;
  // In place of the job's own; drawn at random when neither is there, for all
  // processes that train in sync alike.
  std::optional<uint64_t> seed = std::nullopt;
  // Gets the absolute path of the chief's `run_dir`, once it can be written to.
  // The job ends with its error.
  std::function<absl::Status(const std::string& folder)> on_run_dir;
  std::string muster_version = "";
  Verbosity verbose = Verbosity::kAuto;
  // Says where the files are that the run leaves.
  bool names_files = true;
  std::ostream* output = nullptr;  // Borrowed; null: standard output.
  // Of an evaluator: threads that compute, 0 for all cores; how long it waits
  // for a checkpoint where the job does not say; and who is to be told, when it
  // begins to wait, how to interrupt it from another thread.
  int thread_count = 0;
  absl::Duration evaluator_timeout = absl::Hours(7 * 24);
  std::function<void(std::function<void()> interrupt)> on_interruptible;
};

// Trains, evaluates on the test data if there is some, saves the weights as the
// checkpoint `run_dir`/final_weights (unless the job has save_final_weights:
// false; Model::LoadWeights() reads it), writes `run_dir`/summary.json, and
// says where these are in its last lines. A model that came from a file of
// Keras is also saved as one, `run_dir`/final_model.keras, with the weights. A
// job with export_onnx leaves `run_dir`/final_model.onnx. Of processes that
// train in sync the chief alone speaks and writes. If the process is told to
// end while it trains (PreemptionNotice), the weights are saved likewise, and
// the error, kCancelled, says where they are and how to resume. A strategy may
// lose and regain tasks meanwhile; what comes out of here is final.
//
// In one process the same job and seed give the same weights, to the bit.
//   kInvalidArgument  a folder that the run writes to cannot be written to;
//                     before anything is started, as EnsureWritable()
//   kInternal         a loss or metric became NaN or infinite, and the job does
//                     not say fail_on_non_finite: false; after the summary was
//                     written. A loss ends the run when it does, without final
//                     weights
//   kUnimplemented    export_onnx, and the model has no form in ONNX; after the
//                     summary was written
//   others            as ResolvedJob::Datasets(), make_strategy or Model::Fit()
absl::StatusOr<RunSummary> RunJob(ResolvedJob resolved,
                                  const StrategyFactory& make_strategy,
                                  const RunJobOptions& options);
//   as RunJob() and ResolvedJob::FromProto()
absl::StatusOr<RunSummary> RunJob(const proto::TrainingJob& job,
                                  const StrategyFactory& make_strategy,
                                  const RunJobOptions& options);

// Runs a job in a task of type evaluator: scores every checkpoint that
// its training writes, in this process alone, until training is over.
//   kInvalidArgument  the job does not say where checkpoints are, or has no
//                     data to evaluate on
//   others            as CheckpointEvaluator::Run()
absl::Status EvaluateJob(ResolvedJob resolved, const RunJobOptions& options);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_H_
