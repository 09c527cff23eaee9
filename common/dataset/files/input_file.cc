#include "common/dataset/files/input_file.h"

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/io/storage/disk.h"
#include "common/io/storage/open_input.h"

namespace muster {
namespace {

// Deflate encodes at most 258 bytes in two bits, which is a factor of 1032.
constexpr int64_t kCompressionMax = 1032;
// The first bytes of gzip files.
constexpr uint8_t kGzipMagic[] = {0x1f, 0x8b};

absl::StatusOr<bool> IsCompressed(ReadableFile* file) {
  if (file->size_bytes() < static_cast<int64_t>(sizeof(kGzipMagic))) {
    return false;
  }
  uint8_t begin[sizeof(kGzipMagic)];
  RETURN_IF_ERROR(file->ReadAt(0, absl::MakeSpan(begin)));
  return begin[0] == kGzipMagic[0] && begin[1] == kGzipMagic[1];
}

}  // namespace

absl::StatusOr<std::unique_ptr<InputFile>> InputFile::Open(
    absl::string_view path) {
  ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file,
                   OpenInput(std::string(path)));
  ASSIGN_OR_RETURN(const bool is_compressed, IsCompressed(file.get()));
  int64_t content_bytes_max = file->size_bytes();
  std::unique_ptr<ByteSource> source = CreateFileSource(path, std::move(file));
  if (is_compressed) {
    if (__builtin_mul_overflow(content_bytes_max, kCompressionMax,
                               &content_bytes_max)) {
      content_bytes_max = INT64_MAX;
    }
    source = CreateInflateSource(std::move(source));
  }
  return std::unique_ptr<InputFile>(
      new InputFile(std::move(source), content_bytes_max));
}

absl::Status FileError(const InputFile& file, absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat(file.path(), ": ", message));
}

}  // namespace muster
