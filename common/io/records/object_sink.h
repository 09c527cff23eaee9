#ifndef COMMON_IO_RECORDS_OBJECT_SINK_H_
#define COMMON_IO_RECORDS_OBJECT_SINK_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/system/clock.h"
#include "common/io/records/byte_sink.h"
#include "common/io/storage/disk.h"

namespace muster {

struct ObjectSinkOptions {
  // The content of an existing object, to which the sink appends.
  std::string content = "";
  // Minimum time between the starts of two uploads.
  absl::Duration upload_interval = absl::Seconds(30);
  Disk* disk = Disk::Real();
  Clock* clock = Clock::Real();
};

// Returns a sink whose content is an object (object_url.h). Objects cannot be
// appended to, so each upload replaces the object by a longer one; the content
// is kept in memory.
//
// Flush() does not wait: a thread of the sink uploads the flushed bytes, at
// once or when the upload interval has passed. Close() waits for the last
// upload. A process that is killed loses the bytes that it flushed within the
// interval.
//
// Errors are those of the disk's ReplaceFile(). If an upload that Flush()
// started fails, a later call returns the error.
std::unique_ptr<ByteSink> CreateObjectSink(absl::string_view url,
                                           ObjectSinkOptions options = {});

}  // namespace muster

#endif  // COMMON_IO_RECORDS_OBJECT_SINK_H_
