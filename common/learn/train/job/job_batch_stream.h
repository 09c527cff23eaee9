#ifndef COMMON_LEARN_TRAIN_JOB_JOB_BATCH_STREAM_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_BATCH_STREAM_H_

#include "absl/status/statusor.h"
#include "common/dataset/dataset.h"

namespace muster {

namespace proto {
class JobData_BatchStream;
}  // namespace proto

// Returns the examples {x..., y..., sample weights...} of batches that another
// process writes meanwhile, as docs/formats.md says. The dataset can be read
// once: batches are removed when all processes that train have read them. A
// second pass has no examples once the writer has finished.
//
// Waits for the first batch. Reading waits for each batch, and says so in the
// log after 30 seconds; it ends early where the writer says that there are no
// more.
//   kInvalidArgument     a field is missing or out of range; names it; or
//                        batches have different types
//   kDeadlineExceeded    a batch does not come within timeout_seconds
//   kFailedPrecondition  while reading: the data are read for a second time,
//                        and more are to come
//   as BuildNpy()
absl::StatusOr<Dataset> BuildBatchStream(
    const proto::JobData_BatchStream& stream);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_BATCH_STREAM_H_
