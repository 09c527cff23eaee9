#ifndef PS_CLIENT_SEGMENT_OFFER_H_
#define PS_CLIENT_SEGMENT_OFFER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/net/rpc/channel.h"
#include "ps/client/client_segment.h"
#include "ps/client/segment_pool.h"

namespace muster {

// A segment of this process, and the servers that have taken it. Each server is
// asked over a stream, which tells either side at once when the other has gone.
//
// Thread-safe.
class SegmentOffer {
 public:
  // Offers a segment of `segment_bytes`, 0 for none, to the servers at the
  // other ends of `channels`, which are borrowed. Waits a moment for their
  // answers and says in the log which servers have taken it. Null when none
  // has.
  static std::unique_ptr<SegmentOffer> Make(
      const std::vector<Channel*>& channels, size_t segment_bytes);

  // Takes the segment back. Memory that is still held in this process stays.
  ~SegmentOffer();

  SegmentOffer(const SegmentOffer&) = delete;
  SegmentOffer& operator=(const SegmentOffer&) = delete;

  const std::shared_ptr<SegmentPool>& pool() const { return pool_; }

  bool IsTaken(int server) const;
  // By which the server knows the segment; 0 when it has it no more.
  std::shared_ptr<std::atomic<uint64_t>> segment_id(int server) const;

 private:
  class Taker;

  explicit SegmentOffer(std::unique_ptr<ClientSegment> segment);

  void AskAll(const std::vector<Channel*>& channels);
  void LogTakers(const std::vector<Channel*>& channels) const;

  const std::unique_ptr<ClientSegment> segment_;
  const std::shared_ptr<SegmentPool> pool_;
  std::vector<std::shared_ptr<Taker>> takers_;  // By server.
};

}  // namespace muster

#endif  // PS_CLIENT_SEGMENT_OFFER_H_
