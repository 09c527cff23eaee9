#include "common/io/records/record_writer.h"

#include <array>
#include <cstdint>
#include <utility>

#include "common/core/base/hashes.h"
#include "common/core/base/status_macros.h"
#include "common/io/records/deflate_sink.h"

namespace muster {
namespace {

void StoreLittleEndian(uint64_t value, size_t size_bytes, char* bytes) {
  for (size_t i = 0; i < size_bytes; ++i) {
    bytes[i] = static_cast<char>(value >> (8 * i));
  }
}

std::unique_ptr<ByteSink> Compressed(std::unique_ptr<ByteSink> sink,
                                     RecordCompression compression) {
  switch (compression) {
    case RecordCompression::kGzip:
      return CreateDeflateSink(std::move(sink), DeflateFormat::kGzip);
    case RecordCompression::kZlib:
      return CreateDeflateSink(std::move(sink), DeflateFormat::kZlib);
    case RecordCompression::kNone:
      break;
  }
  return sink;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RecordWriter>> RecordWriter::Create(
    absl::string_view path, const Options& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<ByteSink> sink, CreateFileSink(path));
  return std::make_unique<RecordWriter>(std::move(sink), options);
}

RecordWriter::RecordWriter(std::unique_ptr<ByteSink> sink,
                           const Options& options)
    : sink_(Compressed(std::move(sink), options.compression)) {}

absl::Status RecordWriter::Write(absl::string_view record) {
  std::array<char, kRecordHeaderBytes> header;
  StoreLittleEndian(record.size(), 8, header.data());
  const uint32_t length_crc =
      MaskCrc32c(Crc32c(absl::string_view(header.data(), 8)));
  StoreLittleEndian(length_crc, 4, header.data() + 8);
  std::array<char, kRecordFooterBytes> footer;
  StoreLittleEndian(MaskCrc32c(Crc32c(record)), 4, footer.data());
  RETURN_IF_ERROR(
      sink_->Append(absl::string_view(header.data(), header.size())));
  RETURN_IF_ERROR(sink_->Append(record));
  return sink_->Append(absl::string_view(footer.data(), footer.size()));
}

}  // namespace muster
