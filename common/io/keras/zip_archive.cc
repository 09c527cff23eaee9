#include "common/io/keras/zip_archive.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/io/keras/deflate_expansion.h"
#include "common/io/storage/disk.h"
#include "libzip.h"

namespace muster {
namespace {

// Maximum size of one read: the library counts the bytes of compressed members
// in 32 bits.
constexpr size_t kPieceBytes = size_t{64} << 20;

struct DiscardArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
using Archive = std::unique_ptr<zip_t, DiscardArchive>;

struct CloseMember {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};

struct FreeSource {
  void operator()(zip_source_t* source) const { zip_source_free(source); }
};
using Source = std::unique_ptr<zip_source_t, FreeSource>;

std::string TextOf(zip_error_t* error) { return zip_error_strerror(error); }

// The source from which the library reads an archive. Each call names a
// command; see zip_source_function(3).
class FileSource {
 public:
  explicit FileSource(std::unique_ptr<ReadableFile> file)
      : file_(std::move(file)) {
    zip_error_init(&error_);
  }
  ~FileSource() { zip_error_fini(&error_); }

  uint64_t size_bytes() const {
    return static_cast<uint64_t>(file_->size_bytes());
  }
  // The status of the last read of the file.
  const absl::Status& status() const { return status_; }

  static zip_int64_t Call(void* source, void* data, zip_uint64_t size,
                          zip_source_cmd_t command) {
    auto* const self = static_cast<FileSource*>(source);
    switch (command) {
      case ZIP_SOURCE_SUPPORTS:
        return zip_source_make_command_bitmap(
            ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT,
            ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE, ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL,
            ZIP_SOURCE_SUPPORTS, -1);
      case ZIP_SOURCE_OPEN:
        self->position_ = 0;
        return 0;
      case ZIP_SOURCE_CLOSE:
        return 0;
      case ZIP_SOURCE_READ:
        return self->Read(static_cast<uint8_t*>(data), size);
      case ZIP_SOURCE_SEEK:
        return self->Seek(data, size);
      case ZIP_SOURCE_TELL:
        return self->position_;
      case ZIP_SOURCE_STAT:
        return self->Describe(static_cast<zip_stat_t*>(data));
      case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&self->error_, data, size);
      case ZIP_SOURCE_FREE:
        delete self;
        return 0;
      default:
        zip_error_set(&self->error_, ZIP_ER_OPNOTSUPP, 0);
        return -1;
    }
  }

 private:
  zip_int64_t Read(uint8_t* data, zip_uint64_t size) {
    const auto left =
        static_cast<zip_uint64_t>(file_->size_bytes() - position_);
    const auto count = static_cast<size_t>(std::min(size, left));
    status_ = file_->ReadAt(position_, absl::MakeSpan(data, count));
    if (!status_.ok()) {
      zip_error_set(&error_, ZIP_ER_READ, 0);
      return -1;
    }
    position_ += static_cast<int64_t>(count);
    return static_cast<zip_int64_t>(count);
  }

  zip_int64_t Seek(void* data, zip_uint64_t size) {
    const zip_int64_t position = zip_source_seek_compute_offset(
        position_, file_->size_bytes(), data, size, &error_);
    if (position < 0) return -1;
    position_ = position;
    return 0;
  }

  zip_int64_t Describe(zip_stat_t* about) const {
    zip_stat_init(about);
    about->size = static_cast<zip_uint64_t>(file_->size_bytes());
    about->valid = ZIP_STAT_SIZE;
    return sizeof(*about);
  }

  const std::unique_ptr<ReadableFile> file_;
  int64_t position_ = 0;
  absl::Status status_;
  zip_error_t error_;
};

class LibraryZipReader : public ZipReader {
 public:
  // `archive` owns `source`.
  LibraryZipReader(absl::string_view name, const FileSource* source,
                   Archive archive)
      : name_(name), source_(source), archive_(std::move(archive)) {}

  std::vector<std::string> List() const override;
  absl::StatusOr<std::string> Read(absl::string_view member,
                                   int64_t size_bytes_max) const override;

 private:
  const std::string name_;
  const FileSource* const source_;
  const Archive archive_;
};

std::vector<std::string> LibraryZipReader::List() const {
  std::vector<std::string> names;
  const zip_int64_t count = zip_get_num_entries(archive_.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    const char* const name = zip_get_name(archive_.get(), i, 0);
    if (name != nullptr) names.emplace_back(name);
  }
  return names;
}

absl::StatusOr<std::string> LibraryZipReader::Read(
    absl::string_view member, int64_t size_bytes_max) const {
  const std::string place = absl::StrCat(name_, ": ", member);
  zip_stat_t about;
  zip_stat_init(&about);
  if (zip_stat(archive_.get(), std::string(member).c_str(), 0, &about) != 0 ||
      (about.valid & ZIP_STAT_SIZE) == 0) {
    return absl::NotFoundError(absl::StrCat(
        name_, " has no ", member, "; it has ", absl::StrJoin(List(), ", ")));
  }
  if (about.size / kDeflateExpansionMax > source_->size_bytes()) {
    return absl::DataLossError(absl::StrCat(place, " declares ", about.size,
                                            " bytes, but the archive has ",
                                            source_->size_bytes(), " bytes"));
  }
  if (about.size > static_cast<uint64_t>(size_bytes_max)) {
    return absl::ResourceExhaustedError(
        absl::StrCat(place, " has ", about.size, " bytes; at most ",
                     size_bytes_max, " are read"));
  }
  const std::unique_ptr<zip_file_t, CloseMember> file(
      zip_fopen_index(archive_.get(), about.index, 0));
  if (file == nullptr) {
    RETURN_IF_ERROR(source_->status());
    return absl::UnimplementedError(absl::StrCat(
        place, " cannot be read: ", TextOf(zip_get_error(archive_.get()))));
  }
  // One byte more than declared: reading to the end verifies the checksum.
  std::string bytes(about.size + 1, '\0');
  size_t filled = 0;
  while (filled < bytes.size()) {
    const size_t count = std::min(bytes.size() - filled, kPieceBytes);
    const zip_int64_t got = zip_fread(file.get(), &bytes[filled], count);
    if (got < 0) {
      RETURN_IF_ERROR(source_->status());
      return absl::DataLossError(absl::StrCat(
          place, " is damaged: ", TextOf(zip_file_get_error(file.get()))));
    }
    if (got == 0) break;
    filled += got;
  }
  if (filled != about.size) {
    return absl::DataLossError(absl::StrCat(
        place, " is damaged: expected ", about.size, " bytes, got ", filled));
  }
  bytes.resize(about.size);
  return bytes;
}

absl::Status WriteFailure(zip_t* archive) {
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot make an archive: ", TextOf(zip_get_error(archive))));
}

absl::Status AddMember(zip_t* archive, const ZipMember& member,
                       absl::Time time) {
  zip_source_t* const content = zip_source_buffer(
      archive, member.bytes.data(), member.bytes.size(), /*freep=*/0);
  if (content == nullptr) return WriteFailure(archive);
  const zip_int64_t index =
      zip_file_add(archive, member.name.c_str(), content, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(content);
    return WriteFailure(archive);
  }
  if (zip_set_file_compression(archive, index, ZIP_CM_STORE, 0) != 0 ||
      zip_file_set_mtime(archive, index, absl::ToTimeT(time), 0) != 0) {
    return WriteFailure(archive);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> BytesOf(zip_source_t* source) {
  zip_stat_t about;
  zip_stat_init(&about);
  if (zip_source_open(source) != 0 || zip_source_stat(source, &about) != 0) {
    return absl::ResourceExhaustedError("cannot make an archive");
  }
  std::string bytes(about.size, '\0');
  const zip_int64_t got = zip_source_read(source, bytes.data(), bytes.size());
  zip_source_close(source);
  if (got != static_cast<zip_int64_t>(bytes.size())) {
    return absl::ResourceExhaustedError("cannot make an archive");
  }
  return bytes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ZipReader>> ZipReader::Open(
    absl::string_view name, std::unique_ptr<ReadableFile> file) {
  zip_error_t error;
  zip_error_init(&error);
  auto bytes = std::make_unique<FileSource>(std::move(file));
  Source source(
      zip_source_function_create(FileSource::Call, bytes.get(), &error));
  const FileSource* const borrowed = bytes.get();
  // `source` owns the object now, and deletes it.
  if (source != nullptr) static_cast<void>(bytes.release());
  zip_t* const archive =
      source == nullptr
          ? nullptr
          : zip_open_from_source(source.get(), ZIP_RDONLY, &error);
  if (archive == nullptr) {
    const std::string text = TextOf(&error);
    zip_error_fini(&error);
    RETURN_IF_ERROR(borrowed->status());
    return absl::DataLossError(
        absl::StrCat(name, " is not a zip archive: ", text));
  }
  static_cast<void>(source.release());  // Belongs to the archive now.
  zip_error_fini(&error);
  return std::make_unique<LibraryZipReader>(name, borrowed, Archive(archive));
}

absl::StatusOr<std::string> ZipArchiveOf(const std::vector<ZipMember>& members,
                                         absl::Time time) {
  zip_error_t error;
  zip_error_init(&error);
  const Source source(zip_source_buffer_create(nullptr, 0, 0, &error));
  Archive archive(source == nullptr
                      ? nullptr
                      : zip_open_from_source(
                            source.get(), ZIP_CREATE | ZIP_TRUNCATE, &error));
  zip_error_fini(&error);
  if (archive == nullptr) {
    return absl::ResourceExhaustedError("cannot make an archive");
  }
  // The archive releases one reference when it is closed or discarded.
  zip_source_keep(source.get());
  for (const ZipMember& member : members) {
    const absl::Status status = AddMember(archive.get(), member, time);
    if (!status.ok()) return status;
  }
  if (zip_close(archive.get()) != 0) return WriteFailure(archive.get());
  static_cast<void>(archive.release());
  return BytesOf(source.get());
}

}  // namespace muster
