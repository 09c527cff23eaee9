#include "common/io/keras/zip_archive.h"

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
#include "libzip.h"

namespace muster {
namespace {

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

class LibraryReader : public ZipReader {
 public:
  LibraryReader(absl::string_view name, Archive archive)
      : name_(name), archive_(std::move(archive)) {}

  std::vector<std::string> List() const override;
  absl::StatusOr<std::string> Read(absl::string_view member,
                                   int64_t size_bytes_max) const override;

 private:
  const std::string name_;
  const Archive archive_;
};

std::vector<std::string> LibraryReader::List() const {
  std::vector<std::string> names;
  const zip_int64_t count = zip_get_num_entries(archive_.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    const char* const name = zip_get_name(archive_.get(), i, 0);
    if (name != nullptr) names.emplace_back(name);
  }
  return names;
}

absl::StatusOr<std::string> LibraryReader::Read(absl::string_view member,
                                                int64_t size_bytes_max) const {
  const std::string place = absl::StrCat(name_, ": ", member);
  zip_stat_t about;
  zip_stat_init(&about);
  if (zip_stat(archive_.get(), std::string(member).c_str(), 0, &about) != 0 ||
      (about.valid & ZIP_STAT_SIZE) == 0) {
    return absl::NotFoundError(absl::StrCat(
        name_, " has no ", member, "; it has ", absl::StrJoin(List(), ", ")));
  }
  if (about.size > static_cast<uint64_t>(size_bytes_max)) {
    return absl::ResourceExhaustedError(
        absl::StrCat(place, " has ", about.size, " bytes; at most ",
                     size_bytes_max, " are read"));
  }
  const std::unique_ptr<zip_file_t, CloseMember> file(
      zip_fopen_index(archive_.get(), about.index, 0));
  if (file == nullptr) {
    return absl::UnimplementedError(absl::StrCat(
        place, " cannot be read: ", TextOf(zip_get_error(archive_.get()))));
  }
  // One byte more than declared: reading to the end verifies the checksum.
  std::string bytes(about.size + 1, '\0');
  size_t filled = 0;
  while (filled < bytes.size()) {
    const zip_int64_t got =
        zip_fread(file.get(), &bytes[filled], bytes.size() - filled);
    if (got < 0) {
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
    absl::string_view name, absl::string_view bytes) {
  zip_error_t error;
  zip_error_init(&error);
  Source source(
      zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error));
  zip_t* const archive =
      source == nullptr
          ? nullptr
          : zip_open_from_source(source.get(), ZIP_RDONLY, &error);
  if (archive == nullptr) {
    const std::string text = TextOf(&error);
    zip_error_fini(&error);
    return absl::DataLossError(
        absl::StrCat(name, " is no zip archive: ", text));
  }
  static_cast<void>(source.release());  // Belongs to the archive now.
  zip_error_fini(&error);
  return std::make_unique<LibraryReader>(name, Archive(archive));
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
