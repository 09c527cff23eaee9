#ifndef COMMON_IO_RECORDS_RECORD_WRITER_H_
#define COMMON_IO_RECORDS_RECORD_WRITER_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/io/records/byte_sink.h"
#include "common/io/records/record_format.h"

namespace muster {

// Writes a TFRecord file: TensorFlow's datasets and TensorBoard's event files.
// The format is in record_format.h. Not thread-safe.
//
// Equivalent to: tf.io.TFRecordWriter.
class RecordWriter {
 public:
  struct Options {
    RecordCompression compression = RecordCompression::kNone;
  };

  // Creates or truncates a file.
  //   errors  as CreateFileSink()
  static absl::StatusOr<std::unique_ptr<RecordWriter>> Create(
      absl::string_view path, const Options& options);
  static absl::StatusOr<std::unique_ptr<RecordWriter>> Create(
      absl::string_view path) {
    return Create(path, Options());
  }

  RecordWriter(std::unique_ptr<ByteSink> sink, const Options& options);
  explicit RecordWriter(std::unique_ptr<ByteSink> sink)
      : RecordWriter(std::move(sink), Options()) {}

  // All of these return the sink's errors. After an error, every call returns
  // it.
  absl::Status Write(absl::string_view record);
  // Readers see every record written so far once this returns OK.
  absl::Status Flush() { return sink_->Flush(); }
  // If it is not called, the destructor closes the file and ignores errors.
  absl::Status Close() { return sink_->Close(); }

 private:
  const std::unique_ptr<ByteSink> sink_;
};

}  // namespace muster

#endif  // COMMON_IO_RECORDS_RECORD_WRITER_H_
