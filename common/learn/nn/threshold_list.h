#ifndef COMMON_LEARN_NN_THRESHOLD_LIST_H_
#define COMMON_LEARN_NN_THRESHOLD_LIST_H_

#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

namespace muster {

// The thresholds of a metric: none, one, or several, of which the metric then
// has a value each.
//
//   Precision({.thresholds = 0.3})
//   Precision({.thresholds = {0.3, 0.5, 0.7}})
class ThresholdList {
 public:
  ThresholdList() = default;        // None: the metric's default.
  ThresholdList(std::nullopt_t) {}  // NOLINT
  ThresholdList(double value) : values_({value}) {}  // NOLINT
  ThresholdList(std::initializer_list<double> values) : values_(values) {}
  ThresholdList(std::vector<double> values)  // NOLINT
      : values_(std::move(values)) {}

  const std::vector<double>& values() const { return values_; }
  std::vector<double>& values() { return values_; }

 private:
  std::vector<double> values_;
};

}  // namespace muster

#endif  // COMMON_LEARN_NN_THRESHOLD_LIST_H_
