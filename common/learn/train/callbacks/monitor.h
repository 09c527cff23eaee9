#ifndef COMMON_LEARN_TRAIN_CALLBACKS_MONITOR_H_
#define COMMON_LEARN_TRAIN_CALLBACKS_MONITOR_H_

#include <initializer_list>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/learn/train/history.h"

namespace muster {

// Which way the value that is monitored should go.
enum class MonitorMode {
  // What the name says: "loss" and errors should shrink, accuracies grow.
  kAuto,
  kMin,
  kMax,
};

// One of the logged values, and whether it gets better.
//
// Equivalent to: keras.callbacks.MonitorCallback.
class Monitor {
 public:
  // `owner` is the class of the callback, for messages. A change of less than
  // |min_delta| is no improvement.
  //   kInvalidArgument  the name does not say which way is better, and the mode
  //                     is kAuto
  static absl::StatusOr<Monitor> Create(absl::string_view owner,
                                        absl::string_view name,
                                        MonitorMode mode, double min_delta = 0);

  const std::string& name() const { return name_; }
  // kMin or kMax.
  MonitorMode direction() const { return direction_; }

  // The value in `logs`; none when it is not logged.
  std::optional<double> Find(const Logs& logs) const;

  // Whether `value` is better than `reference`. Any number is better than none
  // and than NaN, which is better than nothing.
  bool IsImprovement(double value, std::optional<double> reference) const;

 private:
  Monitor(absl::string_view name, MonitorMode direction, double min_delta)
      : name_(name), direction_(direction), min_delta_(min_delta) {}

  std::string name_;
  MonitorMode direction_;
  double min_delta_;
};

// What a callback that counts epochs keeps in a checkpoint, as text.
std::string SaveCounts(std::initializer_list<int> counts,
                       std::optional<double> best);
//   kInvalidArgument  `state` is no such text; names the owner
absl::Status RestoreCounts(absl::string_view owner, absl::string_view state,
                           std::initializer_list<int*> counts,
                           std::optional<double>* best);

// "loss, val_loss": what a message says there is.
std::string NamesIn(const Logs& logs);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CALLBACKS_MONITOR_H_
