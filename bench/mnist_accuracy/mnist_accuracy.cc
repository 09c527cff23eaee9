// Trains examples/mnist/mnist.job in this process, once for each of several
// seeds, and fails if one of them misses the target accuracy. The recipe is
// that of the Keras guide on distributed training, which uses the images in the
// order of the file.
//
//   mnist_accuracy --data_dir=/data/mnist

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/core/base/status_macros.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/job/job.h"
#include "common/learn/train/run_summary.h"
#include "proto/training_job.pb.h"

// --job, --run_dir and --threads are flags of Muster's tasks.
ABSL_FLAG(std::string, data_dir, "",
          "The folder with the four files of MNIST.");
ABSL_FLAG(std::string, job_file, "examples/mnist/mnist.job", "The job to run.");
ABSL_FLAG(std::string, summary_dir, "runs/mnist_accuracy",
          "The folder for the summaries.");
ABSL_FLAG(int, seeds, 5, "Number of seeds, from 1.");
ABSL_FLAG(int, threads_per_op, 0, "0 is as many as there are cores.");
ABSL_FLAG(bool, shuffle, false, "Shuffle as specified in the job.");
ABSL_FLAG(double, goal, 0.965, "The test accuracy that each seed must reach.");

namespace muster {
namespace {

absl::Status Run() {
  ASSIGN_OR_RETURN(proto::TrainingJob job,
                   ReadJobFile(absl::GetFlag(FLAGS_job_file),
                               {{"data_dir", absl::GetFlag(FLAGS_data_dir)}}));
  job.clear_strategy();
  if (!absl::GetFlag(FLAGS_shuffle)) job.mutable_train()->clear_shuffle();
  const double goal = absl::GetFlag(FLAGS_goal);
  int missed = 0;
  for (int seed = 1; seed <= absl::GetFlag(FLAGS_seeds); ++seed) {
    ASSIGN_OR_RETURN(
        const RunSummary summary,
        RunJob(job, DefaultStrategyFactory(absl::GetFlag(FLAGS_threads_per_op)),
               {.run_dir = absl::StrCat(absl::GetFlag(FLAGS_summary_dir),
                                        "/seed_", seed),
                .seed = static_cast<uint64_t>(seed),
                .verbose = Verbosity::kSilent}));
    const double accuracy =
        summary.final.at("test_sparse_categorical_accuracy");
    if (accuracy < goal) ++missed;
    std::cout << absl::StrFormat(
                     "seed %d: test accuracy %.4f, validation %.4f, "
                     "%.0f examples/s, %.1f s",
                     seed, accuracy,
                     summary.final.at("val_sparse_categorical_accuracy"),
                     static_cast<double>(summary.history.example_count) /
                         summary.history.train_seconds,
                     summary.run_seconds)
              << std::endl;
  }
  if (missed == 0) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(missed, " seeds did not reach ", goal));
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = muster::Run();
  if (!status.ok()) std::cerr << status << std::endl;
  return status.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
}
