#ifndef COMMON_IO_RECORDS_DEFLATE_SINK_H_
#define COMMON_IO_RECORDS_DEFLATE_SINK_H_

#include <memory>

#include "common/io/records/byte_sink.h"

namespace muster {

enum class DeflateFormat { kGzip, kZlib };

// Writes a compressed stream (RFC 1952 or RFC 1950) to `sink`. Flush() ends a
// block, so that readers see everything, at the cost of compression.
//   errors  as `sink`
std::unique_ptr<ByteSink> CreateDeflateSink(std::unique_ptr<ByteSink> sink,
                                            DeflateFormat format);

}  // namespace muster

#endif  // COMMON_IO_RECORDS_DEFLATE_SINK_H_
