#ifndef COMMON_LEARN_TRAIN_BASE_LOG_LISTS_H_
#define COMMON_LEARN_TRAIN_BASE_LOG_LISTS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/learn/train/base/history.h"

// Metrics whose value is a list of numbers, such as F1Score() with a score for
// each class. Logs have one entry for each number: "f1_score[0]",
// "f1_score[1]", ... Output for users and other programs has the list under the
// metric's name.
namespace muster {

// "f1_score[2]".
std::string LogEntryName(absl::string_view metric, size_t index);

struct LogEntry {
  std::string metric;
  size_t index = 0;
};
// Returns the arguments with which LogEntryName() made `name`; unset if `name`
// is that of a metric with a single number.
std::optional<LogEntry> ParseLogEntryName(absl::string_view name);

// One metric of Logs.
struct LoggedMetric {
  std::string name;
  bool is_list = false;
  std::vector<double> values;  // One, unless it is a list.

  // The value, or the mean of a list.
  double Mean() const;
};
// Returns the metrics of `logs`, sorted by name.
std::vector<LoggedMetric> MetricsOf(const Logs& logs);

// Returns the names and values that a progress line shows. A list is shown as
// its mean, as in Keras.
std::vector<std::pair<std::string, double>> ShownValues(const Logs& logs);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_BASE_LOG_LISTS_H_
