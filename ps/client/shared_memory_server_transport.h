#ifndef PS_CLIENT_SHARED_MEMORY_SERVER_TRANSPORT_H_
#define PS_CLIENT_SHARED_MEMORY_SERVER_TRANSPORT_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "common/net/rpc/channel.h"
#include "ps/client/segment_pool.h"
#include "ps/client/server_transport.h"

namespace muster {

// A transport whose tensors lie in a segment that the server has mapped too.
// Updates are copied into it, unless they were made there; the server applies
// them where they lie, and writes answers to where the caller reads them.
//
// Small tensors go beside the message, and so does everything while
// `segment_id`, under which the server knows the segment, is 0, and when the
// segment is full. A server that says that it does not know the segment has
// done nothing, so the exchange is sent again with all bytes beside it, and
// `segment_id` becomes 0.
//
// Memory of an exchange whose end is unknown is abandoned: its server may
// still be reading and writing there.
//
// `channel` is borrowed.
std::unique_ptr<ServerTransport> MakeSharedMemoryServerTransport(
    Channel* channel, std::shared_ptr<SegmentPool> pool,
    std::shared_ptr<std::atomic<uint64_t>> segment_id);

}  // namespace muster

#endif  // PS_CLIENT_SHARED_MEMORY_SERVER_TRANSPORT_H_
