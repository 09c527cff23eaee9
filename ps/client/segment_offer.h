#ifndef PS_CLIENT_SEGMENT_OFFER_H_
#define PS_CLIENT_SEGMENT_OFFER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/net/rpc/channel.h"
#include "ps/client/client_segment.h"
#include "ps/client/segment_pool.h"

namespace muster {

// Offers a shared segment of this process to parameter servers and tracks which
// of them have accepted it. The offer to each server is a stream, so that
// either side notices immediately when the other one ends.
//
// Thread-safe.
class SegmentOffer {
 public:
  // Offers a segment of `segment_bytes` (0: none) to the servers at the other
  // ends of `channels`, which are borrowed. Waits briefly for their responses
  // and logs which servers have accepted the segment. Returns null if none has.
  static std::unique_ptr<SegmentOffer> Make(
      const std::vector<Channel*>& channels, size_t segment_bytes);

  // Withdraws the segment. Buffers that this process still holds remain valid.
  ~SegmentOffer();

  SegmentOffer(const SegmentOffer&) = delete;
  SegmentOffer& operator=(const SegmentOffer&) = delete;

  const std::shared_ptr<SegmentPool>& pool() const { return pool_; }

  // Offers the segment again to a server that was restarted, if its predecessor
  // had accepted it. Waits briefly for the response.
  void Renew(int server, Channel* channel) ABSL_LOCKS_EXCLUDED(mutex_);

  bool IsTaken(int server) const;
  // Returns the id of the segment on that server; 0 if the server has not
  // accepted the segment or has released it.
  std::shared_ptr<std::atomic<uint64_t>> segment_id(int server) const;

 private:
  class Taker;

  explicit SegmentOffer(std::unique_ptr<ClientSegment> segment);

  std::shared_ptr<Taker> TakerOf(int server) const ABSL_LOCKS_EXCLUDED(mutex_);
  void AskAll(const std::vector<Channel*>& channels);
  void LogTakers(const std::vector<Channel*>& channels) const;

  const std::unique_ptr<ClientSegment> segment_;
  const std::shared_ptr<SegmentPool> pool_;
  // The number at the beginning of the segment.
  uint64_t proof_ = 0;
  mutable absl::Mutex mutex_;
  // By server.
  std::vector<std::shared_ptr<Taker>> takers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // PS_CLIENT_SEGMENT_OFFER_H_
