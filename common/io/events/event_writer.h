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
#include "proto/event.pb.h"

namespace muster {

// Writes what TensorBoard shows of one run: a file of events in the folder of
// the run, named as TensorFlow names it,
// "events.out.tfevents.<seconds>.<host>.<process>.<number>.v2". A folder has
// one writer at a time; TensorBoard follows the newest file in it.
//
// The file is made when the first event comes, so that runs without any leave
// no trace. Readers see an event as soon as Write() has returned, which costs
// one write of the system and waits for no device.
//
// After an error the file ends wherever the disk left off, so it is given up.
// Events are refused with that error until Options::retry_after has passed;
// then another file is begun.
//
// Equivalent to: tf.summary.create_file_writer. Not thread-safe.
class EventWriter {
 public:
  struct Options {
    std::string folder;  // Made if need be.
    absl::Duration retry_after = absl::Minutes(1);
    // In the file's name; empty: this machine's name.
    std::string host;
    // Of the wall; null: absl::Now.
    std::function<absl::Time()> wall_time;
    // Null: CreateFileSink().
    std::function<absl::StatusOr<std::unique_ptr<ByteSink>>(absl::string_view)>
        create_file;
  };

  // Does not touch the disk.
  explicit EventWriter(Options options);
  ~EventWriter();

  // One event with all of `values`.
  //   kResourceExhausted  the disk is full
  //   others              as CreateFileSink() and the disk; names the file
  absl::Status Write(int64_t step,
                     absl::Span<const proto::Summary::Value> values);

  // The next event begins another file. Without an open file it does nothing.
  absl::Status Close();

  const std::string& folder() const { return options_.folder; }
  // Of the file at hand; empty without one.
  const std::string& path() const { return path_; }

 private:
  absl::Status Open(absl::Time now);
  absl::Status Append(const proto::Event& event);
  // Keeps the error of what was done to the file.
  absl::Status Note(const absl::Status& status, absl::Time now);

  const Options options_;
  std::string path_;
  std::unique_ptr<RecordWriter> file_;  // Null when none is open.
  absl::Status error_;                  // Of the last file that failed.
  absl::Time retry_at_ = absl::InfinitePast();
};

}  // namespace muster

#endif  // COMMON_IO_EVENTS_EVENT_WRITER_H_
