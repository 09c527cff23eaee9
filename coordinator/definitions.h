#ifndef COORDINATOR_DEFINITIONS_H_
#define COORDINATOR_DEFINITIONS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/system/duration_histogram.h"

namespace muster {

struct IteratorRecord;
struct WorkerRecord;
namespace proto {
class WorkerCommand;
class WorkerReport;
}  // namespace proto

// The functions and iterators of a job, to which closures refer by id. Each is
// sent to a worker before the first closure that may need it.
//
// Not thread-safe.
class Definitions {
 public:
  Definitions();
  ~Definitions();

  // Adds a function or an iterator and returns its id. Functions with the same
  // graph have the same id.
  uint32_t AddFunction(absl::string_view name, std::string serialized_graph);
  uint32_t AddIterator(IteratorRecord iterator);

  bool has_functions() const { return !functions_.empty(); }

  // Adds the definitions that have not been sent to the worker of `record`.
  void AddTo(WorkerRecord* record, proto::WorkerCommand* command) const;

  // Adds the durations of steps in the report to their functions.
  //   kInvalidArgument  a function is unknown, or an entry has no steps
  absl::Status AddStepDurations(const proto::WorkerReport& report);
  const DurationHistogram& StepDurations(uint32_t function_id) const {
    return *functions_[function_id].step_durations;
  }
  // Returns the total duration of the steps of all functions.
  absl::Duration TotalStepDuration() const;

 private:
  // A function; its id is its index in functions_.
  struct Function {
    uint64_t fingerprint = 0;
    std::string serialized_graph;
    std::string name;
    // Durations of its steps on the workers.
    std::unique_ptr<DurationHistogram> step_durations =
        std::make_unique<DurationHistogram>();
  };
  std::vector<Function> functions_;
  std::vector<IteratorRecord> iterators_;
};

}  // namespace muster

#endif  // COORDINATOR_DEFINITIONS_H_
