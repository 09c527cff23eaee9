#ifndef COMMON_LEARN_TRAIN_REPORT_PAGE_H_
#define COMMON_LEARN_TRAIN_REPORT_PAGE_H_

#include <string>

#include "common/learn/train/run_summary.h"

namespace muster {

// Returns `summary` as one HTML page: the final values, a chart of each loss
// and metric over the epochs (the validation data's in the same chart),
// throughput and step times, retries, recoveries, and the tasks of the cluster.
// The page contains no scripts and loads nothing, so it can be read without a
// network. Follows the reader's light or dark colour scheme, and fits a phone.
std::string ToHtml(const RunSummary& summary);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_REPORT_PAGE_H_
