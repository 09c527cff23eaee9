#ifndef PS_CLIENT_SHARED_MEMORY_SERVER_TRANSPORT_H_
#define PS_CLIENT_SHARED_MEMORY_SERVER_TRANSPORT_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "common/net/rpc/channel.h"
#include "ps/client/segment_pool.h"
#include "ps/client/server_transport.h"

namespace muster {

// A transport that passes tensors in a segment that the server has mapped as
// well. Updates are copied to the segment unless they were created there. The
// server applies them from the segment, and writes responses to the addresses
// from which the caller reads them.
//
// Small tensors are sent in the message. All tensors are sent in the message
// while the segment is full, and while `segment_id`, the id of the segment on
// the server, is 0. If a server responds that the id is unknown, it has
// processed nothing: the exchange is sent again with all tensors in the
// message, and `segment_id` becomes 0.
//
// After an exchange whose outcome is unknown, its memory is abandoned: the
// server may still read and write there.
//
// `channel` is borrowed.
std::unique_ptr<ServerTransport> MakeSharedMemoryServerTransport(
    Channel* channel, std::shared_ptr<SegmentPool> pool,
    std::shared_ptr<std::atomic<uint64_t>> segment_id);

}  // namespace muster

#endif  // PS_CLIENT_SHARED_MEMORY_SERVER_TRANSPORT_H_
