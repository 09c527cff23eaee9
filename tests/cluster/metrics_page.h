#ifndef TESTS_CLUSTER_METRICS_PAGE_H_
#define TESTS_CLUSTER_METRICS_PAGE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace muster {

// Returns the sum of all series of `name` ("muster_steps_total") in the text of
// a metrics page; 0 if there are none.
double MetricOf(absl::string_view metrics, absl::string_view name);

}  // namespace muster

#endif  // TESTS_CLUSTER_METRICS_PAGE_H_
