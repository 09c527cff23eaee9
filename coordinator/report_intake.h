#ifndef COORDINATOR_REPORT_INTAKE_H_
#define COORDINATOR_REPORT_INTAKE_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/core/tensor/tensor.h"
#include "coordinator/closure_queue.h"
#include "coordinator/release_list.h"

namespace muster {

struct WorkerRecord;
namespace proto {
class WorkerReport;
}  // namespace proto

// How to handle a failed closure.
enum class FailureVerdict {
  kFailure,  // An error of the closure.
  kRetry,    // A transient error between tasks; retry the closure.
};

// Decides by status code and payload, not by message. Must not block.
using FailureJudge = std::function<FailureVerdict(const absl::Status& status)>;

// Applies a worker's report, and the `tensors` in the same message, to the
// queue. If a closure must be retried, sets `trouble` to its error.
//   kInvalidArgument  the report refers to closures that the worker does not
//                     hold, or to tensors that were not sent
absl::Status TakeReport(const proto::WorkerReport& report,
                        absl::Span<const Tensor> tensors,
                        const WorkerRecord& record, const FailureJudge& judge,
                        const std::shared_ptr<ReleaseList>& releases,
                        ClosureQueue* queue, absl::Status* trouble);

}  // namespace muster

#endif  // COORDINATOR_REPORT_INTAKE_H_
