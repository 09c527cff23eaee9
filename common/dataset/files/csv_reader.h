#ifndef COMMON_DATASET_FILES_CSV_READER_H_
#define COMMON_DATASET_FILES_CSV_READER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/dataset/files/input_file.h"

namespace muster {

// One field of a record, unquoted.
struct CsvField {
  std::string text;
  int64_t line = 0;    // Where it begins; both count from 1.
  int64_t column = 0;  // In bytes.
};

// Reads the records of a file of comma-separated values (RFC 4180): fields may
// be quoted, and may then contain delimiters, line ends and doubled quotes.
// Lines end in LF, CRLF or CR; empty lines are skipped. Not thread-safe.
class CsvReader {
 public:
  static constexpr size_t kFieldBytesMax = size_t{1} << 20;
  static constexpr size_t kFieldCountMax = size_t{1} << 16;

  //   as InputFile::Open
  static absl::StatusOr<std::unique_ptr<CsvReader>> Open(absl::string_view path,
                                                         char delimiter);

  // Puts the next record into `fields` and returns true, or returns false at
  // the end of the file.
  //   kInvalidArgument  a quote is misplaced or not closed, or a field or
  //                     record is too long; gives file, line and column
  //   kDataLoss         as InputFile::Read
  absl::StatusOr<bool> ReadRecord(std::vector<CsvField>* fields);

  // Prefixes `message` with the file, the line and the column.
  absl::Status ErrorAt(int64_t line, int64_t column,
                       absl::string_view message) const;

 private:
  static constexpr int kEndOfFile = -1;

  CsvReader(std::unique_ptr<InputFile> file, char delimiter);

  // The next byte, or kEndOfFile.
  absl::StatusOr<int> Peek();
  void Advance();
  absl::Status ReadField(CsvField* field);
  absl::Status ReadQuoted(CsvField* field);
  absl::Status SkipByteOrderMark();
  bool EndsField(int byte) const;

  const std::unique_ptr<InputFile> file_;
  const char delimiter_;
  std::vector<char> buffer_;
  size_t begin_ = 0;  // The unread part of the buffer.
  size_t end_ = 0;
  int64_t line_ = 1;
  int64_t column_ = 1;
};

}  // namespace muster

#endif  // COMMON_DATASET_FILES_CSV_READER_H_
