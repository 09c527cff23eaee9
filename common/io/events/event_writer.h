#ifndef COMMON_IO_EVENTS_EVENT_WRITER_H_
#define COMMON_IO_EVENTS_EVENT_WRITER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/io/records/byte_sink.h"
#include "common/io/records/record_writer.h"

namespace muster {
namespace proto {
class Event;
class Summary_Value;
}  // namespace proto

// Writes TensorBoard's events of one run: a file of events in the folder of the
// run, named as TensorFlow does,
// "events.out.tfevents.<seconds>.<host>.<process>.<number>.v2". A folder has
// one writer at a time; TensorBoard reads the newest file in it.
//
// The file is created with the first event, so runs without events create none.
// Readers see an event as soon as Write() has returned. Write() makes one
// system call and does not wait for the device.
//
// In a folder of an object store (object_url.h) the file is an object, which is
// replaced by a longer one (CreateObjectSink()), so readers see an event later.
// After each Options::object_bytes_max bytes another object begins. The Write()
// that fills an object, and Close(), wait until the store has the object or has
// failed.
//
// After an error, the end of the file is undefined, so the writer abandons it.
// It rejects events with that error until Options::retry_after has passed, and
// then starts another file.
//
// Equivalent to: tf.summary.create_file_writer. Not thread-safe.
class EventWriter {
 public:
  struct Options {
    std::string folder;  // Created if missing, or the URL of objects.
    absl::Duration retry_after = absl::Minutes(1);
    // Used in the file's name; empty: this machine's name.
    std::string host;
    // Wall-clock time; null: absl::Now.
    std::function<absl::Time()> wall_time;
    // Size at which an object is closed, because each further event would
    // upload all of it again.
    int64_t object_bytes_max = int64_t{4} << 20;
    // Null: CreateFileSink(), or CreateObjectSink() for a URL.
    std::function<absl::StatusOr<std::unique_ptr<ByteSink>>(absl::string_view)>
        create_file;
  };

  // Does not access the disk.
  explicit EventWriter(Options options);
  ~EventWriter();

  // Writes one event with all of `values` (summaries.h).
  //   kResourceExhausted  the disk is full
  //   others              as the sink and the disk; names the file
  absl::Status Write(int64_t step,
                     absl::Span<const proto::Summary_Value> values);

  // Closes the file; the next event starts another one. Does nothing if no file
  // is open.
  absl::Status Close();

  const std::string& folder() const { return options_.folder; }
  // The path of the open file; empty if none is open.
  const std::string& path() const { return path_; }

 private:
  absl::Status Open(absl::Time now);
  absl::Status Append(const proto::Event& event);
  // Records the status of an operation on the file.
  absl::Status Note(const absl::Status& status, absl::Time now);

  const Options options_;
  std::string path_;
  std::unique_ptr<RecordWriter> file_;  // Null when none is open.
  int64_t event_bytes_ = 0;             // Bytes of the events in the open file.
  absl::Status error_;  // The error of the last file that failed.
  absl::Time retry_at_ = absl::InfinitePast();
};

}  // namespace muster

#endif  // COMMON_IO_EVENTS_EVENT_WRITER_H_
