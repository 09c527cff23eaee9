#ifndef COMMON_LEARN_TRAIN_JOB_JOB_CHECK_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_CHECK_H_

#include <ostream>

#include "absl/status/status.h"
#include "common/learn/train/job/resolved_job.h"
#include "common/net/cluster/cluster_config.h"

namespace muster {

// Runs a job as shapes: opens its data and reads a batch of each part, checks
// that its folders can be written, and traces the steps of training, validation
// and test for these batches. Computes and leaves nothing. Writes to `output`
// which columns are not used, and the memory that each task of the cluster will
// need for variables, a step and tables of data, beside what a process may use
// on this machine. These are estimates.
//   kInvalidArgument  a folder cannot be written, a part of the data has no
//                     examples, or model, loss or metrics do not fit the data
//   kUnimplemented    the strategy is `tpu`, and an op has no translation
//   others            as ResolvedJob::OpenData(), and from reading the data
absl::Status CheckJob(ResolvedJob& job, const ClusterConfig& config,
                      std::ostream& output);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_CHECK_H_
