#include "common/learn/strategy/synchronous/aggregated_update.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/strategy/synchronous/scale_elements.h"
#include "common/net/collectives/reduce_op.h"
#include "common/net/collectives/tensor_span.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

bool IsScatter(UpdateKind kind) {
  return kind == UpdateKind::kScatterUpdate ||
         kind == UpdateKind::kScatterAdd || kind == UpdateKind::kScatterSub;
}

bool CanBeSummed(DType dtype) {
  return IsFloating(dtype) || dtype == DType::kInt32 || dtype == DType::kInt64;
}

absl::Status Error(const proto::VariableSpec& spec, absl::string_view message) {
  return absl::InvalidArgumentError(
      absl::StrCat("variable \"", spec.name(), "\": ", message));
}

absl::Status CheckAggregation(const proto::VariableSpec& spec, DType dtype,
                              UpdateKind kind) {
  switch (spec.aggregation()) {
    case proto::AGGREGATION_ONLY_FIRST_REPLICA:
      if (dtype != DType::kString) return absl::OkStatus();
      return Error(spec, "strings cannot be sent from replica to replica");
    case proto::AGGREGATION_SUM:
    case proto::AGGREGATION_MEAN:
      if (!CanBeSummed(dtype)) {
        return Error(
            spec,
            absl::StrCat("it is ", DTypeName(dtype),
                         " and cannot be aggregated by ",
                         proto::VariableAggregation_Name(spec.aggregation())));
      }
      if (kind == UpdateKind::kScatterUpdate) {
        return Error(spec,
                     "rows that replicas set cannot be summed; aggregate by "
                     "ONLY_FIRST_REPLICA");
      }
      return absl::OkStatus();
    default:
      return Error(spec,
                   "every replica assigns to it, and it does not say how their "
                   "values become one: set its aggregation to SUM, MEAN or "
                   "ONLY_FIRST_REPLICA");
  }
}

}  // namespace

absl::Status AggregatedUpdate::Check(const proto::VariableSpec& spec,
                                     const TensorType& type, UpdateKind kind) {
  RETURN_IF_ERROR(CheckAggregation(spec, type.dtype, kind));
  if (IsScatter(kind) && type.shape.rank() == 0) {
    return Error(spec, "it is a scalar and has no rows");
  }
  return absl::OkStatus();
}

bool AggregatedUpdate::IsSum(const proto::VariableSpec& spec, UpdateKind kind) {
  return !IsScatter(kind) && (spec.aggregation() == proto::AGGREGATION_SUM ||
                              spec.aggregation() == proto::AGGREGATION_MEAN);
}

absl::StatusOr<std::unique_ptr<AggregatedUpdate>> AggregatedUpdate::Create(
    const proto::VariableSpec& spec, const TensorType& type, UpdateKind kind,
    Communicator* communicator, absl::Duration timeout) {
  RETURN_IF_ERROR(Check(spec, type, kind));
  return std::unique_ptr<AggregatedUpdate>(
      new AggregatedUpdate(spec, type, IsScatter(kind), communicator, timeout));
}

AggregatedUpdate::AggregatedUpdate(const proto::VariableSpec& spec,
                                   TensorType type, bool has_rows,
                                   Communicator* communicator,
                                   absl::Duration timeout)
    : name_(spec.name()),
      type_(std::move(type)),
      aggregation_(spec.aggregation()),
      communicator_(communicator),
      timeout_(timeout) {
  if (has_rows) {
    rows_.emplace(name_, type_, communicator_, timeout_);
    return;
  }
  exchanged_ = Tensor(type_.dtype, {type_.shape.element_count() + 1});
  value_ = Tensor(type_.dtype, type_.shape, exchanged_.buffer());
}

absl::StatusOr<bool> AggregatedUpdate::Aggregate(const Tensor& value,
                                                 const Tensor& indices,
                                                 bool has_data) {
  return rows_.has_value() ? AggregateRows(value, indices, has_data)
                           : AggregateValue(value, has_data);
}

absl::StatusOr<bool> AggregatedUpdate::AggregateValue(const Tensor& value,
                                                      bool has_data) {
  if (value.dtype() != type_.dtype || value.shape() != type_.shape) {
    return absl::InvalidArgumentError(
        absl::StrCat("variable \"", name_, "\": value is ",
                     value.type().ToString(), "; expected ", type_.ToString()));
  }
  uint8_t* const data = exchanged_.mutable_raw_data();
  uint8_t* const count_data = data + value.size_bytes();
  if (value.size_bytes() > 0) {
    if (has_data) {
      std::memcpy(data, value.raw_data(), value.size_bytes());
    } else {
      std::memset(data, 0, value.size_bytes());
    }
  }
  VisitNumber(type_.dtype, [&]<typename T>() {
    *reinterpret_cast<T*>(count_data) = static_cast<T>(has_data ? 1 : 0);
  });
  const CollectiveCall call{.name = name_, .timeout = timeout_};
  const bool takes_first =
      aggregation_ == proto::AGGREGATION_ONLY_FIRST_REPLICA;
  RETURN_IF_ERROR(
      takes_first
          ? communicator_->Broadcast(SpanOf(exchanged_), 0, call)
          : communicator_->AllReduce(ReduceOp::kSum, SpanOf(exchanged_), call));
  const double count = exchanged_.ElementAsDouble(value.element_count());
  if (count == 0) return false;
  if (aggregation_ == proto::AGGREGATION_MEAN) {
    ScaleElements(type_.dtype, 1 / count, value.element_count(), data);
  }
  return true;
}

absl::StatusOr<bool> AggregatedUpdate::AggregateRows(const Tensor& value,
                                                     const Tensor& indices,
                                                     bool has_data) {
  const bool takes_first =
      aggregation_ == proto::AGGREGATION_ONLY_FIRST_REPLICA;
  rows_->Clear();
  if (has_data && (!takes_first || communicator_->rank() == 0)) {
    RETURN_IF_ERROR(rows_->Add(indices, value, 1));
  }
  RETURN_IF_ERROR(rows_->Gather());
  const int count = rows_->contributor_count();
  if (count == 0) return false;
  if (aggregation_ == proto::AGGREGATION_MEAN) rows_->Scale(1.0 / count);
  return true;
}

}  // namespace muster
