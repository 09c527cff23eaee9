#ifndef COORDINATOR_SYNCHRONOUS_STEPS_H_
#define COORDINATOR_SYNCHRONOUS_STEPS_H_

#include <cstdint>
#include <optional>
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
  // closure scheduled. `recorded` is the result of open_round_gradients() at
  // the place from which this coordinator continues: servers then have
  // gradients of later closures, too. Has no effect unless is_on().
  //   errors  as ClusterConnection::GradientCounts()
  absl::Status BeginRun(std::optional<int> recorded);

  // Records that the oldest closure of the run has finished.
  void NoteFinished() { ++finished_count_; }

  // Returns how many gradients of the open round precede the oldest closure
  // that has not been noted as finished.
  int open_round_gradients() const {
    return is_on() ? static_cast<int>(finished_count_ % gradient_count_) : 0;
  }

 private:
  ClusterConnection* const connection_;
  const int gradient_count_;
  const std::vector<std::string> variables_;  // That the step trains.
  // Closures since the beginning of some round.
  int64_t finished_count_ = 0;
};

}  // namespace muster

#endif  // COORDINATOR_SYNCHRONOUS_STEPS_H_
