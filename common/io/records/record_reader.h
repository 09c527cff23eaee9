#ifndef COMMON_IO_RECORDS_RECORD_READER_H_
#define COMMON_IO_RECORDS_RECORD_READER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/io/records/byte_source.h"
#include "common/io/records/record_format.h"

namespace muster {

// Reads the records of a TFRecord file in order and verifies their checksums.
// The format is in record_format.h. Not thread-safe.
//
// Equivalent to: tf.compat.v1.io.tf_record_iterator, the basis of
// TFRecordDataset.
class RecordReader {
 public:
  struct Options {
    RecordCompression compression = RecordCompression::kNone;
    // A longer record is treated as damage.
    int64_t record_bytes_max = int64_t{1} << 30;
  };

  //   as OpenFileSource()
  static absl::StatusOr<std::unique_ptr<RecordReader>> Open(
      absl::string_view path, const Options& options);
  static absl::StatusOr<std::unique_ptr<RecordReader>> Open(
      absl::string_view path) {
    return Open(path, Options());
  }

  RecordReader(std::unique_ptr<ByteSource> source, const Options& options);
  explicit RecordReader(std::unique_ptr<ByteSource> source)
      : RecordReader(std::move(source), Options()) {}

  // Puts the next record into `record` and returns true. Returns false at the
  // end, and in every later call. Memory use is bounded by the content of the
  // file, not by the lengths it declares.
  //   kDataLoss  a checksum does not match, or the file ends within a record;
  //              names the file, the record's number and its offset. Offsets in
  //              compressed files are those of the uncompressed content.
  //   others     as the source
  absl::StatusOr<bool> Next(std::string* record);

  // After an error: true if it concerns one record only, and Next() continues
  // with the following record. Otherwise Next() returns the same error again.
  bool can_continue() const { return status_.ok(); }

  // The offset of the next record, in bytes of the content.
  int64_t offset() const { return offset_; }

 private:
  absl::StatusOr<bool> ReadNext(std::string* record);
  absl::StatusOr<bool> ReadLength(uint64_t* length);
  absl::Status RecordError(absl::string_view what) const;
  absl::Status TruncatedError(absl::string_view part, uint64_t found,
                              uint64_t expected) const;

  const std::unique_ptr<ByteSource> source_;
  const bool is_compressed_;
  const int64_t record_bytes_max_;
  int64_t offset_ = 0;
  int64_t record_number_ = 0;
  bool ended_ = false;
  absl::Status status_;  // An error after which nothing can be read.
};

}  // namespace muster

#endif  // COMMON_IO_RECORDS_RECORD_READER_H_
