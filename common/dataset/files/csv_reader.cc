#include "common/dataset/files/csv_reader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

constexpr size_t kCsvBufferBytes = size_t{1} << 17;

}  // namespace

absl::StatusOr<std::unique_ptr<CsvReader>> CsvReader::Open(
    absl::string_view path, char delimiter) {
  ASSIGN_OR_RETURN(std::unique_ptr<InputFile> file, InputFile::Open(path));
  std::unique_ptr<CsvReader> reader(new CsvReader(std::move(file), delimiter));
  RETURN_IF_ERROR(reader->SkipByteOrderMark());
  return reader;
}

CsvReader::CsvReader(std::unique_ptr<InputFile> file, char delimiter)
    : file_(std::move(file)), delimiter_(delimiter), buffer_(kCsvBufferBytes) {}

absl::Status CsvReader::ErrorAt(int64_t line, int64_t column,
                                absl::string_view message) const {
  return absl::InvalidArgumentError(
      absl::StrCat(file_->path(), ":", line, ":", column, ": ", message));
}

absl::StatusOr<int> CsvReader::Peek() {
  if (begin_ == end_) {
    begin_ = 0;
    end_ = 0;
    ASSIGN_OR_RETURN(end_, file_->Read(buffer_.data(), buffer_.size()));
    if (end_ == 0) return kEndOfFile;
  }
  return static_cast<unsigned char>(buffer_[begin_]);
}

void CsvReader::Advance() {
  if (buffer_[begin_++] == '\n') {
    ++line_;
    column_ = 1;
  } else {
    ++column_;
  }
}

absl::Status CsvReader::SkipByteOrderMark() {
  RETURN_IF_ERROR(Peek().status());
  if (absl::string_view(buffer_.data(), end_).substr(0, 3) == "\xef\xbb\xbf") {
    begin_ = 3;
  }
  return absl::OkStatus();
}

bool CsvReader::EndsField(int byte) const {
  return byte == kEndOfFile || byte == '\n' || byte == '\r' ||
         byte == static_cast<unsigned char>(delimiter_);
}

absl::Status CsvReader::ReadQuoted(CsvField* field) {
  Advance();  // The opening quote.
  while (true) {
    ASSIGN_OR_RETURN(const int byte, Peek());
    if (byte == kEndOfFile) {
      return ErrorAt(field->line, field->column,
                     "the quote that opens here is never closed");
    }
    Advance();
    if (byte == '"') {
      ASSIGN_OR_RETURN(const int next, Peek());
      if (EndsField(next)) return absl::OkStatus();
      if (next != '"') {
        return ErrorAt(line_, column_,
                       "expected a delimiter or the end of the line after a "
                       "quoted field; a quote within one is doubled");
      }
      Advance();
    }
    if (field->text.size() == kFieldBytesMax) {
      return ErrorAt(
          field->line, field->column,
          absl::StrCat("a field is longer than ", kFieldBytesMax, " bytes"));
    }
    field->text.push_back(static_cast<char>(byte));
  }
}

absl::Status CsvReader::ReadField(CsvField* field) {
  field->text.clear();
  field->line = line_;
  field->column = column_;
  ASSIGN_OR_RETURN(int byte, Peek());
  if (byte == '"') return ReadQuoted(field);
  while (!EndsField(byte)) {
    if (field->text.size() == kFieldBytesMax) {
      return ErrorAt(
          field->line, field->column,
          absl::StrCat("a field is longer than ", kFieldBytesMax, " bytes"));
    }
    field->text.push_back(static_cast<char>(byte));
    Advance();
    ASSIGN_OR_RETURN(byte, Peek());
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> CsvReader::ReadRecord(std::vector<CsvField>* fields) {
  ASSIGN_OR_RETURN(int byte, Peek());
  while (byte == '\n' || byte == '\r') {
    Advance();
    ASSIGN_OR_RETURN(byte, Peek());
  }
  if (byte == kEndOfFile) return false;
  // Fields keep their memory from record to record.
  for (size_t count = 1;; ++count) {
    if (count > kFieldCountMax) {
      return ErrorAt(
          line_, column_,
          absl::StrCat("a record has more than ", kFieldCountMax, " fields"));
    }
    if (fields->size() < count) fields->emplace_back();
    RETURN_IF_ERROR(ReadField(&(*fields)[count - 1]));
    ASSIGN_OR_RETURN(byte, Peek());
    if (byte == static_cast<unsigned char>(delimiter_)) {
      Advance();
      continue;
    }
    fields->resize(count);
    if (byte != kEndOfFile) Advance();
    return true;
  }
}

}  // namespace muster
