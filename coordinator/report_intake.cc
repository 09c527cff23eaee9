#include "coordinator/report_intake.h"

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/net/rpc/status_detail.h"
#include "coordinator/remote_value.h"
#include "coordinator/worker_record.h"
#include "proto/worker.pb.h"

namespace muster {
namespace {

RemoteValueState::Kept KeptBy(const WorkerRecord& record, uint64_t closure_id,
                              const std::shared_ptr<ReleaseList>& releases) {
  const ReleaseList::Entry entry = {.worker = record.worker,
                                    .session = record.session,
                                    .closure_id = closure_id};
  return {.keeper = {.worker_index = record.worker,
                     .worker_incarnation = record.incarnation,
                     .session = record.session},
          .release = [releases, entry] { releases->Add(entry); }};
}

absl::Status TakeResult(const proto::ClosureResult& result,
                        absl::Span<const Tensor> tensors, int worker,
                        ClosureQueue* queue) {
  if (result.first_tensor() > tensors.size() ||
      result.tensor_count() > tensors.size() - result.first_tensor()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the results of closure ", result.id(),
                     " are missing from the report"));
  }
  const absl::Span<const Tensor> own =
      tensors.subspan(result.first_tensor(), result.tensor_count());
  return queue->Finish(worker, result.id(),
                       std::vector<Tensor>(own.begin(), own.end()));
}

}  // namespace

absl::Status TakeReport(const proto::WorkerReport& report,
                        absl::Span<const Tensor> tensors,
                        const WorkerRecord& record, const FailureJudge& judge,
                        const std::shared_ptr<ReleaseList>& releases,
                        ClosureQueue* queue, absl::Status* trouble) {
  const int worker = record.worker;
  int64_t count = report.results_size();
  for (const proto::ClosureRange& range : report.finished()) {
    RETURN_IF_ERROR(
        queue->FinishRange(worker, range.first_id(), range.count()));
    count += range.count();
  }
  for (const proto::ClosureResult& result : report.results()) {
    RETURN_IF_ERROR(
        result.kept() ? queue->FinishKept(worker, result.id(),
                                          KeptBy(record, result.id(), releases))
                      : TakeResult(result, tensors, worker, queue));
  }
  for (const proto::ClosureFailure& failure : report.failures()) {
    absl::Status status = DecodeStatus(failure.status());
    if (status.ok()) status = absl::UnknownError("failed without a reason");
    if (judge(status) == FailureVerdict::kRetry) {
      *trouble = status;
      RETURN_IF_ERROR(queue->FailOrRetry(worker, failure.id(), status));
    } else {
      RETURN_IF_ERROR(queue->Fail(worker, failure.id(), status));
    }
  }
  for (const uint64_t id : report.returned()) {
    RETURN_IF_ERROR(queue->Return(worker, id));
  }
  for (const uint64_t id : report.awaiting_permission()) {
    RETURN_IF_ERROR(queue->AskPermission(worker, id));
  }
  absl::Duration busy;
  for (const proto::FunctionTime& time : report.function_times()) {
    busy += absl::Nanoseconds(time.busy_ns());
  }
  queue->ObservePace(worker, count, busy);
  return absl::OkStatus();
}

}  // namespace muster
