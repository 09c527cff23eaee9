#ifndef COORDINATOR_REPORT_INTAKE_H_
#define COORDINATOR_REPORT_INTAKE_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/core/tensor/tensor.h"
#include "coordinator/closure_queue.h"
#include "coordinator/release_list.h"
#include "coordinator/worker_lane.h"
#include "proto/worker.pb.h"

namespace muster {

// What a failed closure means.
enum class FailureVerdict {
  kFailure,  // The closure's own fault.
  kRetry,    // A passing trouble between tasks; another try may do.
};

// Judges by code and payload, never by words. Must not wait.
using FailureJudge = std::function<FailureVerdict(const absl::Status& status)>;

// Tells the queue what a worker has reported, `tensors` beside it. Sets
// `trouble` to why, when a closure is to be tried again.
//   kInvalidArgument  the report speaks of closures that the worker does not
//                     hold, or of tensors that did not come
absl::Status TakeReport(const proto::WorkerReport& report,
                        absl::Span<const Tensor> tensors,
                        const WorkerLane& lane, const FailureJudge& judge,
                        const std::shared_ptr<ReleaseList>& releases,
                        ClosureQueue* queue, absl::Status* trouble);

}  // namespace muster

#endif  // COORDINATOR_REPORT_INTAKE_H_
