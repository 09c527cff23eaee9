#ifndef PS_SEGMENT_INTAKE_H_
#define PS_SEGMENT_INTAKE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/system/thread_pool.h"
#include "common/core/tensor/buffer.h"
#include "common/net/rpc/service.h"
#include "ps/shared_tensors.h"

namespace muster {

namespace proto {
class RequestIdentity;
class ShareRequest;
}  // namespace proto

// The segments of memory that clients of this host share with a parameter
// server. A segment stays mapped until the client disconnects or withdraws it,
// or the server ends. An exchange keeps its segment mapped until it has
// finished.
//
// Thread-safe.
class SegmentIntake {
 public:
  struct Options {
    bool is_enabled = true;  // If false, every offer is declined.
    int segment_count_max = 1024;
    size_t segment_bytes_max = size_t{1} << 42;
  };

  explicit SegmentIntake(const Options& options);
  ~SegmentIntake();

  // Registers the method with which clients offer segments.
  void AddTo(Service* service);

  // Returns the segment that `caller` has offered with this id. `data` is null
  // if the id is unknown or belongs to another client.
  ClientMemory Find(uint64_t segment_id,
                    const proto::RequestIdentity& caller) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Releases all segments and declines further offers.
  void End() ABSL_LOCKS_EXCLUDED(mutex_);

  int segment_count() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Blocks until there are exactly `count` segments. Returns false on timeout.
  bool AwaitSegmentCount(int count, absl::Duration timeout) const
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Share;
  struct Segment {
    std::shared_ptr<Buffer> memory;
    std::string caller_task;
    uint64_t caller_incarnation = 0;
  };

  // Fetches, maps and registers the offered segment. Returns the number at its
  // beginning, which proves to the client that both processes map the same
  // memory.
  absl::StatusOr<uint64_t> Take(const proto::ShareRequest& request,
                                const proto::RequestIdentity& caller)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Drop(uint64_t segment_id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns false if the limit is reached or the intake has ended.
  bool Enter(Share* share) ABSL_LOCKS_EXCLUDED(mutex_);
  void Leave(Share* share) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  mutable absl::Mutex mutex_;
  bool is_ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_set<Share*> shares_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint64_t, Segment> segments_ ABSL_GUARDED_BY(mutex_);

  // Fetching a segment blocks until its client responds. Declared last, so that
  // it stops before the other members are destroyed.
  ThreadPool pool_;
};

}  // namespace muster

#endif  // PS_SEGMENT_INTAKE_H_
