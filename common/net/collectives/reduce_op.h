#ifndef COMMON_NET_COLLECTIVES_REDUCE_OP_H_
#define COMMON_NET_COLLECTIVES_REDUCE_OP_H_

#include "absl/strings/string_view.h"

namespace muster {

// How the values of all ranks are combined.
//
// Equivalent to: MPI_Op, ncclRedOp_t. tf.distribute.ReduceOp has kSum and
// kMean.
enum class ReduceOp {
  kSum,
  // The sum divided by the number of ranks. Integers are divided towards zero.
  kMean,
  kMin,
  kMax,
  kProd,
};

// "sum", "mean", ...
inline absl::string_view ReduceOpName(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kMean:
      return "mean";
    case ReduceOp::kMin:
      return "min";
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kProd:
      return "prod";
  }
  return "no reduction";
}

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_REDUCE_OP_H_
