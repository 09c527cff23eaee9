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

// The arguments of every collective call. All ranks must pass equal values.
struct CollectiveCall {
  // The tensor, for errors and hang reports: "dense/kernel and 3 more".
  absl::string_view name;
  // How long the whole call may take. The call may fail up to one second later
  // if a rank has to learn from its peers which rank delays the call.
  absl::Duration timeout = absl::Seconds(300);
};

// The progress of a communicator, for a hang report. It may be outdated by the
// time it is read: each rank in `missing_ranks` was missing a moment ago.
struct CollectiveProgress {
  bool is_running = false;
  std::string operation;  // "all-reduce".
  std::string name;       // As in CollectiveCall.
  uint64_t sequence = 0;  // Sequence number of the collective within the group,
                          // from 1.
  absl::Duration elapsed;
  std::vector<int> missing_ranks;  // Ranks that have not arrived, if known.
};

// One rank's interface to a group of replicas that compute together. Every rank
// calls the same collectives with the same arguments in the same order. Ranks
// are numbered from 0 to size()-1.
//
// Guarantees: all ranks end with the same bits; values are combined in an order
// that depends on the number of ranks, the element count and the algorithm
// only, so the same inputs give the same bits in every run. Float16 and
// bfloat16 are summed in float32 where an algorithm combines several values at
// once. A message of another generation is ignored. In a group of one rank,
// each call returns without waiting.
//
// Errors are final: after the first one each later call fails with it, and the
// contents of the buffer are unspecified. To continue, the caller makes a new
// group with another generation.
//   kDeadlineExceeded  names the collective, the tensor, how long it waited,
//                      and the ranks that have not arrived, or that delay the
//                      ranks that have
//   kUnavailable       a rank is gone; names it, the collective and the tensor
//   kInvalidArgument   ranks disagree about collective, operation, dtype or
//                      element count; says what which rank passed
//   kUnimplemented     values of this dtype cannot be reduced (bool, string,
//                      uint8)
//   any code           the status that was passed to Abort()
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
  // Identifies this group among those that the same tasks form one after
  // another.
  virtual uint64_t generation() const = 0;
  // The transport's name for start-up log lines: "shared memory", "raw TCP",
  // ...
  virtual std::string transport() const = 0;

  // Allocates zeroed memory that this group's collectives transfer fastest.
  // Gradients are packed into it. The memory begins at a page boundary and
  // shares no page with other memory. The buffer may outlive the communicator.
  // Every rank allocates the same sizes in the same order, as if this were a
  // collective.
  virtual absl::StatusOr<std::shared_ptr<Buffer>> Allocate(
      size_t size_bytes, const CollectiveCall& call) = 0;

  // Replaces every rank's `buffer` with the reduction of all ranks' buffers.
  virtual absl::Status AllReduce(ReduceOp op, TensorSpan buffer,
                                 const CollectiveCall& call) = 0;

  // Reduces the buffers of all ranks and splits the result into size() parts,
  // as PartOf() defines. Afterwards this rank's part of `buffer` holds the
  // reduction of that part, with the bits that AllReduce() of `buffer` yields
  // there, except on GPUs. The rest of `buffer` is unspecified.
  virtual absl::Status ReduceScatter(ReduceOp op, TensorSpan buffer,
                                     const CollectiveCall& call) = 0;

  // Writes the concatenation of all ranks' `input`s to `output`. The input of
  // rank r has element_counts[r] elements, which may be 0. Every rank passes
  // the same `element_counts`. `input` may be this rank's part of `output`.
  virtual absl::Status AllGather(TensorSpan input,
                                 absl::Span<const int64_t> element_counts,
                                 TensorSpan output,
                                 const CollectiveCall& call) = 0;

  // Copies the `buffer` of rank `root` to every rank's `buffer`.
  virtual absl::Status Broadcast(TensorSpan buffer, int root,
                                 const CollectiveCall& call) = 0;

  // Returns when all ranks have called it.
  virtual absl::Status Barrier(const CollectiveCall& call) = 0;

  // Ends the current call and every later one with `status`, which is not OK.
  // Only the first Abort() has an effect. Does not wait. Thread-safe.
  virtual void Abort(absl::Status status) = 0;

  // Thread-safe.
  virtual CollectiveProgress Progress() const = 0;

  // Returns the same group's collectives on memory of a GPU, or null if it has
  // none. The result is valid as long as this object. Both are called from one
  // thread at a time.
  virtual DeviceCommunicator* on_device() { return nullptr; }

  // The elements of `element_count` that rank `rank` of `size` holds after
  // ReduceScatter(). Parts are contiguous and in rank order. If the division
  // leaves a remainder, each of the first parts is one element longer.
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
