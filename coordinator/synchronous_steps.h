#ifndef COORDINATOR_SYNCHRONOUS_STEPS_H_
#define COORDINATOR_SYNCHRONOUS_STEPS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/compute/graph/graph.h"
#include "coordinator/cluster_connection.h"

namespace muster {

// The part of a train loop in synchronous training (UpdateRounds). Not
// thread-safe.
class SynchronousSteps {
 public:
  // `connection` is borrowed. Its options say whether training is synchronous.
  SynchronousSteps(ClusterConnection* connection, const Graph& step);

  bool is_on() const { return gradient_count_ > 0; }

  // Continues the round of which the servers have gradients, whatever has
  // happened to training before. Call it before each run of the loop, with no
  // closure scheduled. Has no effect unless is_on().
  //   errors  as VariableStore::UpdateCounts()
  absl::Status BeginRun();

 private:
  ClusterConnection* const connection_;
  const int gradient_count_;
  const std::vector<std::string> variables_;  // That the step trains.
};

}  // namespace muster

#endif  // COORDINATOR_SYNCHRONOUS_STEPS_H_
