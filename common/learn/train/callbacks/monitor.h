#ifndef COMMON_LEARN_TRAIN_CALLBACKS_MONITOR_H_
#define COMMON_LEARN_TRAIN_CALLBACKS_MONITOR_H_

#include <initializer_list>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/metric_direction.h"

namespace muster {

// The direction in which the monitored value improves.
enum class MonitorMode {
  // That of the metric (metric_direction.h).
  kAuto,
  kMin,
  kMax,
};

// Keras' names, in the order of MonitorMode.
inline constexpr absl::string_view kMonitorModeNames[] = {"auto", "min", "max"};
inline constexpr absl::string_view kMonitorModeDescription =
    "AUTO: that of the metric, whatever its name; losses shrink. Counts have "
    "none.";

// Monitors whether one of the logged values improves.
//
// Equivalent to: keras.callbacks.MonitorCallback.
class Monitor {
 public:
  // `owner` is the class of the callback, for messages. `direction` is that of
  // the metric, as TrainingProgress::DirectionOf() says it. A change of less
  // than |min_delta| is not an improvement.
  //   kInvalidArgument  the mode is kAuto, and the metric has no direction
  static absl::StatusOr<Monitor> Create(
      absl::string_view owner, absl::string_view name, MonitorMode mode,
      std::optional<MetricDirection> direction, double min_delta = 0);

  const std::string& name() const { return name_; }
  // kMin or kMax.
  MonitorMode direction() const { return direction_; }

  // Returns the value in `logs`; nullopt if it is not logged.
  std::optional<double> Find(const Logs& logs) const;

  // True if `value` is better than `reference`. Any number is better than no
  // value and than NaN. NaN is better than no value.
  bool IsImprovement(double value, std::optional<double> reference) const;

 private:
  Monitor(absl::string_view name, MonitorMode direction, double min_delta)
      : name_(name), direction_(direction), min_delta_(min_delta) {}

  std::string name_;
  MonitorMode direction_;
  double min_delta_;
};

// The state that a callback which counts epochs stores in a checkpoint, as
// text.
std::string SaveCounts(std::initializer_list<int> counts,
                       std::optional<double> best);
// Counts that the text of an earlier build lacks, the last ones, are kept.
//   kInvalidArgument  `state` is not such a text; names the owner
absl::Status RestoreCounts(absl::string_view owner, absl::string_view state,
                           std::initializer_list<int*> counts,
                           std::optional<double>* best);

// "loss, val_loss": the list of available values in a message.
std::string NamesIn(const Logs& logs);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CALLBACKS_MONITOR_H_
