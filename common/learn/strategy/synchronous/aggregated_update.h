#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_AGGREGATED_UPDATE_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_AGGREGATED_UPDATE_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/compute/variables/variable_session.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/strategy/synchronous/row_gather.h"
#include "common/net/collectives/communicator.h"

namespace muster {

namespace proto {
enum VariableAggregation : int;
class VariableSpec;
}  // namespace proto

// An update, other than by gradients, of a variable whose copies are always
// equal. All replicas make the update at the same time, and the variable's
// aggregation combines their values. Not thread-safe.
//
// Equivalent to: assignments to tf.distribute's MirroredVariable in a replica
// context.
class AggregatedUpdate {
 public:
  //   kInvalidArgument  the variable has no aggregation, or one that this kind
  //                     of update or the dtype does not support; names the
  //                     variable
  static absl::Status Check(const proto::VariableSpec& spec,
                            const TensorType& type, UpdateKind kind);

  // True if the replicas' values can be combined by summing them, and dividing
  // by their number if the aggregation is MEAN.
  static bool IsSum(const proto::VariableSpec& spec, UpdateKind kind);

  // `communicator` is borrowed.
  //   errors  as Check()
  static absl::StatusOr<std::unique_ptr<AggregatedUpdate>> Create(
      const proto::VariableSpec& spec, const TensorType& type, UpdateKind kind,
      Communicator* communicator, absl::Duration timeout);

  // Exchanges the replicas' values. Returns false if there is nothing to apply
  // because no replica that the aggregation uses had data. A collective.
  //   kInvalidArgument  value or indices do not fit the variable
  //   as Communicator
  absl::StatusOr<bool> Aggregate(const Tensor& value, const Tensor& indices,
                                 bool has_data);

  // The value to apply to every copy; valid until the next call.
  const Tensor& value() const {
    return rows_.has_value() ? rows_->values() : value_;
  }
  const Tensor& indices() const {
    return rows_.has_value() ? rows_->indices() : no_indices_;
  }

 private:
  AggregatedUpdate(const proto::VariableSpec& spec, TensorType type,
                   bool has_rows, Communicator* communicator,
                   absl::Duration timeout);

  absl::StatusOr<bool> AggregateValue(const Tensor& value, bool has_data);
  absl::StatusOr<bool> AggregateRows(const Tensor& value, const Tensor& indices,
                                     bool has_data);

  const std::string name_;
  const TensorType type_;
  const proto::VariableAggregation aggregation_;
  Communicator* const communicator_;
  const absl::Duration timeout_;
  // The value, followed by the number of replicas with data.
  Tensor exchanged_;
  Tensor value_;  // exchanged_ without the number at its end.
  std::optional<RowGather> rows_;
  const Tensor no_indices_;
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_AGGREGATED_UPDATE_H_
