#include "deploy/musterctl/copy_files.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/io/tar/tar_stream.h"
#include "deploy/musterctl/standard_streams.h"

namespace muster {
namespace {

constexpr absl::string_view kStandardStream = "-";
constexpr int64_t kPieceBytes = 1 << 20;

// Takes the files of a folder one by one.
class FileSink {
 public:
  virtual ~FileSink() = default;
  virtual absl::Status Begin(const TarFile& file) = 0;
  virtual absl::Status Append(absl::Span<const uint8_t> bytes) = 0;
  virtual absl::Status End() = 0;     // Of a file.
  virtual absl::Status Finish() = 0;  // After the last file.
};

class FolderSink final : public FileSink {
 public:
  FolderSink(std::string folder, Disk* disk)
      : folder_(std::move(folder)), disk_(disk) {}

  absl::Status Begin(const TarFile& file) override {
    const std::string path = JoinPath(folder_, file.name);
    RETURN_IF_ERROR(disk_->MakeFolder(FolderOf(path)));
    ASSIGN_OR_RETURN(file_, disk_->Create(path));
    return absl::OkStatus();
  }
  absl::Status Append(absl::Span<const uint8_t> bytes) override {
    return file_->Append(bytes);
  }
  absl::Status End() override { return file_->Sync(); }
  absl::Status Finish() override { return absl::OkStatus(); }

 private:
  const std::string folder_;
  Disk* const disk_;
  std::unique_ptr<WritableFile> file_;
};

class OutputSink final : public FileSink {
 public:
  absl::Status Begin(const TarFile& file) override {
    return writer_.Begin(file);
  }
  absl::Status Append(absl::Span<const uint8_t> bytes) override {
    return writer_.Append(bytes);
  }
  absl::Status End() override { return absl::OkStatus(); }
  absl::Status Finish() override { return writer_.Finish(); }

 private:
  TarWriter writer_{WriteToStandardOutput};
};

// Passes a file to `sink`. `read` fills the span with the next bytes.
absl::Status CopyFile(
    const TarFile& file,
    const std::function<absl::Status(absl::Span<uint8_t>)>& read,
    FileSink& sink) {
  RETURN_IF_ERROR(sink.Begin(file));
  std::vector<uint8_t> piece(std::min(file.size_bytes, kPieceBytes));
  for (int64_t rest = file.size_bytes; rest > 0;) {
    const absl::Span<uint8_t> bytes =
        absl::MakeSpan(piece).first(std::min(rest, kPieceBytes));
    RETURN_IF_ERROR(read(bytes));
    RETURN_IF_ERROR(sink.Append(bytes));
    rest -= static_cast<int64_t>(bytes.size());
  }
  return sink.End();
}

absl::Status CopyArchive(FileSink& sink) {
  TarReader reader(ReadFromStandardInput);
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<TarFile> file, reader.Next());
    if (!file.has_value()) return absl::OkStatus();
    RETURN_IF_ERROR(CopyFile(
        *file, [&](absl::Span<uint8_t> bytes) { return reader.Read(bytes); },
        sink));
  }
}

// Copies the files in `folder`, whose names in the sink begin with `prefix`.
absl::Status CopyFolder(const std::string& folder, const std::string& prefix,
                        Disk* disk, FileSink& sink) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, disk->List(folder));
  for (const std::string& name : names) {
    const std::string path = JoinPath(folder, name);
    const std::string copy = absl::StrCat(prefix, name);
    const absl::StatusOr<std::unique_ptr<ReadableFile>> file = disk->Open(path);
    if (file.ok()) {
      int64_t offset = 0;
      RETURN_IF_ERROR(CopyFile(
          {.name = copy, .size_bytes = (*file)->size_bytes()},
          [&](absl::Span<uint8_t> bytes) {
            const int64_t begin = offset;
            offset += static_cast<int64_t>(bytes.size());
            return (*file)->ReadAt(begin, bytes);
          },
          sink));
      continue;
    }
    // A folder is no regular file, and in an object store no object.
    if (!absl::IsInvalidArgument(file.status()) &&
        !absl::IsNotFound(file.status())) {
      return file.status();
    }
    RETURN_IF_ERROR(CopyFolder(path, absl::StrCat(copy, "/"), disk, sink));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CopyFiles(const std::string& from, const std::string& to,
                       Disk* disk) {
  if (from == kStandardStream && to == kStandardStream) {
    return absl::InvalidArgumentError(
        "copy - -: expected a folder or a URL for one of both");
  }
  std::unique_ptr<FileSink> sink;
  if (to == kStandardStream) {
    sink = std::make_unique<OutputSink>();
  } else {
    RETURN_IF_ERROR(disk->MakeFolder(to));
    sink = std::make_unique<FolderSink>(to, disk);
  }
  RETURN_IF_ERROR(from == kStandardStream ? CopyArchive(*sink)
                                          : CopyFolder(from, "", disk, *sink));
  return sink->Finish();
}

}  // namespace muster
