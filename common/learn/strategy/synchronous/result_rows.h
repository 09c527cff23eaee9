#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_RESULT_ROWS_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_RESULT_ROWS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/core/tensor/tensor.h"
#include "common/net/collectives/communicator.h"

namespace muster {

// The rows, such as predictions, that all replicas have computed in one step,
// in the order of the replicas. Not thread-safe.
class ResultRows {
 public:
  // `types` are the types of the results: rows of known shape. `communicator`
  // is borrowed.
  //   kInvalidArgument  a result has no rows, or rows of unknown shape or of
  //                     strings
  static absl::StatusOr<std::unique_ptr<ResultRows>> Create(
      std::vector<TensorType> types, Communicator* communicator,
      absl::Duration timeout);

  // A replica without data passes no results. A collective; errors are those of
  // the communicator.
  absl::Status Gather(absl::Span<const Tensor> results, bool has_data);

  // The number of replicas with data; if 0, there are no rows.
  int64_t contributor_count() const { return contributor_count_; }
  // The rows of all replicas; valid until the next call.
  absl::Span<const Tensor> results() const { return results_; }

 private:
  ResultRows(std::vector<TensorType> types, Communicator* communicator,
             absl::Duration timeout);

  absl::Status ExchangeCounts(absl::Span<const Tensor> results, bool has_data);

  const std::vector<TensorType> types_;
  Communicator* const communicator_;
  const absl::Duration timeout_;
  // For each rank: whether it has data, then the rows of each result.
  std::vector<int64_t> counts_;
  std::vector<int64_t> counts_per_rank_;
  int64_t contributor_count_ = 0;
  std::vector<Tensor> results_;
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_RESULT_ROWS_H_
