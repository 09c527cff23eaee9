#ifndef COMMON_LEARN_TRAIN_JOB_JOB_PREDICT_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_PREDICT_H_

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/job/resolved_job.h"

namespace muster {

struct PredictJobOptions {
  std::string output_file;
  // The prefix of a checkpoint, or a folder of them, as Model::LoadWeights().
  std::string weights;
  // A file or folder that is read in place of the one in the job's
  // `predict_data`, or else in `test`, `validation` or `train`. Empty: the
  // job's `predict_data`.
  std::string data_file = "";
  // Adds a column with the class of the greatest value of each output that has
  // several.
  bool with_classes = false;
  int thread_count = 0;  // 0 for all cores.
  Verbosity verbose = Verbosity::kAuto;
  std::ostream* output = nullptr;  // Borrowed; null: standard output.
};

// Predicts with a trained model, in this process: loads the weights, and writes
// a file with a row for each example, in the order of the data: an array of
// NumPy if its name ends in ".npy", of a model with one output, and otherwise
// CSV. Labels are ignored, and the data need not have them. The columns of an
// output are called as the layer that gives it: "dense_2", or "dense_2_0",
// "dense_2_1", ... where it has several values; "dense_2_class" with
// `with_classes`, which holds a name where the training data has
// csv.class_names. If the data has csv.id, the first column of a CSV file has
// that text.
//
// The file is there when it is complete, as ReplaceFile().
//   kInvalidArgument  there are no data to predict for, they never end, or they
//                     do not fit the model or the weights; the folder of the
//                     file cannot be written to; or the predictions are more
//                     than one array of numbers, and the file is .npy
//   kNotFound         no weights, or no data
//   others            as JobSource::OpenInputs(), Model::LoadWeights() and
//                     Model::PredictOnBatch()
absl::Status PredictJob(ResolvedJob resolved, const PredictJobOptions& options);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_PREDICT_H_
