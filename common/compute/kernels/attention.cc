#include "common/compute/kernels/attention.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"

namespace muster {

namespace {

absl::Status AddBias(const TensorType& bias, DType dtype,
                     AttentionGeometry* geometry) {
  const std::array<int64_t, 4> scores = {geometry->batch, geometry->heads,
                                         geometry->query_count,
                                         geometry->key_count};
  bool fits = bias.dtype == dtype && bias.shape.rank() == 4;
  std::array<int64_t, 4> extents = {};
  for (int axis = 0; fits && axis < 4; ++axis) {
    extents[axis] = bias.shape.dim(axis);
    fits = extents[axis] == scores[axis] || (extents[axis] == 1 && axis < 2);
  }
  if (!fits) {
    return absl::InvalidArgumentError(absl::StrCat(
        "attention expects a bias of ", DTypeName(dtype), "[",
        absl::StrJoin(scores, ","), "], whose first two extents may be 1; got ",
        bias.ToString()));
  }
  geometry->bias_extents = extents;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<AttentionGeometry> AttentionGeometry::Of(
    const TensorType& q, const TensorType& k, const TensorType& v,
    const TensorType* bias) {
  const int rank = q.shape.rank();
  // True if `other` has the extents of `like` on all axes except the features
  // and, with has_own_time, the time.
  const auto fits = [&](const TensorType& other, const TensorType& like,
                        bool has_own_time) {
    if (other.dtype != q.dtype || other.shape.rank() != rank) return false;
    for (int axis = 0; axis < rank - 1; ++axis) {
      if (axis == 1 && has_own_time) continue;
      if (other.shape.dim(axis) != like.shape.dim(axis)) return false;
    }
    return true;
  };
  if ((rank != 3 && rank != 4) || !fits(k, q, true) || !fits(v, k, false) ||
      k.shape.dim(rank - 1) != q.shape.dim(rank - 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "attention expects a query [batch, time, heads, features], or without "
        "heads, a key that differs from it in time only, and a value that "
        "differs from the key in features only; got ",
        q.ToString(), ", ", k.ToString(), " and ", v.ToString()));
  }
  AttentionGeometry geometry = {.batch = q.shape.dim(0),
                                .heads = rank == 4 ? q.shape.dim(2) : 1,
                                .query_count = q.shape.dim(1),
                                .key_count = k.shape.dim(1),
                                .key_dim = q.shape.dim(rank - 1),
                                .value_dim = v.shape.dim(rank - 1)};
  if (bias != nullptr) RETURN_IF_ERROR(AddBias(*bias, q.dtype, &geometry));
  return geometry;
}

}  // namespace muster
