#ifndef COMMON_NET_COLLECTIVES_COMMUNICATOR_H_
#define COMMON_NET_COLLECTIVES_COMMUNICATOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/core/tensor/buffer.h"
#include "common/net/collectives/reduce_op.h"
#include "common/net/collectives/tensor_span.h"

namespace muster {

class DeviceCommunicator;

// One call of a collective, as all ranks make it.
struct CollectiveCall {
  // The tensor, for errors and hang reports: "dense/kernel and 3 more".
  absl::string_view name;
  // How long the whole call may take. It may fail up to one second later, where
  // a rank has to hear from others which of them holds up the call.
  absl::Duration timeout = absl::Seconds(300);
};

// The progress of a communicator, for a hang report. A guess by the time it is
// read, but every rank named as missing was missing a moment ago.
struct CollectiveProgress {
  bool is_running = false;
  std::string operation;  // "all-reduce".
  std::string name;       // As in CollectiveCall.
  uint64_t sequence = 0;  // Of the collective: the first of this group is 1.
  absl::Duration elapsed;
  std::vector<int> missing_ranks;  // Those that have not arrived, if known.
};

// One rank's end of a group of replicas that compute together. Every rank calls
// the same collectives with the same arguments in the same order; `size` ranks
// number 0 to size-1.
//
// Guarantees: all ranks end with the same bits; values are combined in an order
// that depends on the number of ranks, the element count and the algorithm
// only, so the same inputs give the same bits in every run. Float16 and
// bfloat16 are summed in float32 where an algorithm combines several values at
// once. A message of another generation changes nothing. A group of one rank
// does everything at once.
//
// Errors are final: after the first one each later call fails with it, and the
// contents of the buffer are unspecified. A new group has to be made, with
// another generation.
//   kDeadlineExceeded  names the collective, the tensor, how long it waited,
//                      and the ranks that have not arrived, or that hold up
//                      the ranks that have
//   kUnavailable       a rank is gone; names it, the collective and the tensor
//   kInvalidArgument   ranks disagree about collective, operation, dtype or
//                      element count; says what came from whom
//   kUnimplemented     no such reduction of this dtype (bool, string, uint8)
//   as given to Abort()
//
// Dtypes: float32, float64, float16, bfloat16, int32, int64; AllGather and
// Broadcast move uint8 and bool too.
//
// Not thread-safe, except for Abort() and Progress().
//
// Equivalent to: MPI_Comm, ncclComm_t, gloo::Context.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Which of the groups that these tasks have formed, one after another.
  virtual uint64_t generation() const = 0;
  // "shared memory", "raw TCP", ...: what start-up lines say.
  virtual std::string transport() const = 0;

  // Memory that collectives of this group move fastest: gradients are packed
  // into it. Zeroed. It begins at a page, and no other memory is on its pages.
  // The buffer may outlive the communicator. Every rank allocates the same
  // sizes in the same order, as if this were a collective.
  virtual absl::StatusOr<std::shared_ptr<Buffer>> Allocate(
      size_t size_bytes, const CollectiveCall& call) = 0;

  // Every rank's `buffer` becomes the reduction of all. In place.
  virtual absl::Status AllReduce(ReduceOp op, TensorSpan buffer,
                                 const CollectiveCall& call) = 0;

  // The reduction of all `buffer`s, split into size() parts as PartOf() says:
  // the part of this rank holds its reduction afterwards, the rest of `buffer`
  // is unspecified.
  virtual absl::Status ReduceScatter(ReduceOp op, TensorSpan buffer,
                                     const CollectiveCall& call) = 0;

  // `output` becomes the concatenation of the `input`s of all ranks, of which
  // rank r has element_counts[r] elements: the same numbers on every rank, 0
  // among them. `input` may be its own part of `output`.
  virtual absl::Status AllGather(TensorSpan input,
                                 absl::Span<const int64_t> element_counts,
                                 TensorSpan output,
                                 const CollectiveCall& call) = 0;

  // Every rank's `buffer` becomes the one of rank `root`.
  virtual absl::Status Broadcast(TensorSpan buffer, int root,
                                 const CollectiveCall& call) = 0;

  // Returns when all ranks have called it.
  virtual absl::Status Barrier(const CollectiveCall& call) = 0;

  // Ends the call under way and every later one with `status`, which is not OK;
  // the first one counts. Does not wait. Thread-safe.
  virtual void Abort(absl::Status status) = 0;

  // Thread-safe.
  virtual CollectiveProgress Progress() const = 0;

  // The same ranks' collectives on memory of a GPU; null if there are none. As
  // long as this; calls of both come from one thread at a time.
  virtual DeviceCommunicator* on_device() { return nullptr; }

  // The elements that rank `rank` of `size` holds of `element_count` after
  // ReduceScatter(): contiguous, in rank order, the first ones one longer
  // where the division leaves a remainder.
  struct Range {
    int64_t begin = 0;
    int64_t end = 0;
  };
  static Range PartOf(int64_t element_count, int rank, int size) {
    const int64_t share = element_count / size;
    const int64_t longer = element_count % size;
    const int64_t begin = share * rank + (rank < longer ? rank : longer);
    return {begin, begin + share + (rank < longer ? 1 : 0)};
  }
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_COMMUNICATOR_H_
