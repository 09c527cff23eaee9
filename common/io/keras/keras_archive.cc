#include "common/io/keras/keras_archive.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/io/keras/zip_archive.h"
#include "common/io/storage/disk.h"

namespace muster {
namespace {

constexpr char kMetadata[] = "metadata.json";
constexpr char kConfig[] = "config.json";
constexpr char kWeights[] = "model.weights.h5";
constexpr char kAssets[] = "assets/";

constexpr int64_t kFileSizeBytesMax = int64_t{64} << 30;
constexpr int64_t kConfigSizeBytesMax = int64_t{64} << 20;
constexpr int64_t kAssetsSizeBytesMax = int64_t{256} << 20;
// Limits of weights whose size does not follow from the rest of the archive.
constexpr int64_t kWeightsExpansionMax = 8;
constexpr int64_t kAllowanceBytes = int64_t{64} << 20;

// The release of Keras whose file format is written.
constexpr char kKerasVersion[] = "3.15.1";

constexpr absl::string_view kHdf5Magic = "\x89HDF";
constexpr absl::string_view kZipMagic = "PK\x03\x04";

absl::StatusOr<bool> StartsWith(absl::string_view magic, ReadableFile& file) {
  std::string start(magic.size(), '\0');
  if (file.size_bytes() < static_cast<int64_t>(start.size())) return false;
  RETURN_IF_ERROR(file.ReadAt(
      0,
      absl::MakeSpan(reinterpret_cast<uint8_t*>(start.data()), start.size())));
  return start == magic;
}

// Reads the weights of an archive of `file_bytes`, whose other members are
// `others`.
absl::StatusOr<std::string> ReadWeights(const ZipReader& zip,
                                        int64_t file_bytes,
                                        const KerasWeightsLimit& limit,
                                        const KerasArchive& others) {
  const std::optional<int64_t> by_model =
      limit == nullptr ? std::nullopt : limit(others);
  const int64_t by_file =
      std::min(file_bytes, kFileSizeBytesMax) * kWeightsExpansionMax +
      kAllowanceBytes;
  absl::StatusOr<std::string> weights = zip.Read(
      kWeights, std::min(by_model.value_or(by_file), kFileSizeBytesMax));
  if (!absl::IsResourceExhausted(weights.status())) return weights;
  return absl::ResourceExhaustedError(absl::StrCat(
      weights.status().message(),
      by_model.has_value() ? ", which is what the model in config.json can hold"
                           : ", for a file of this size"));
}

}  // namespace

absl::StatusOr<KerasArchive> ReadKerasArchive(Disk* disk,
                                              absl::string_view path,
                                              const KerasWeightsLimit& limit) {
  ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, disk->Open(path));
  const int64_t file_bytes = file->size_bytes();
  ASSIGN_OR_RETURN(const std::unique_ptr<ZipReader> zip,
                   ZipReader::Open(path, std::move(file)));
  KerasArchive archive;
  absl::StatusOr<std::string> metadata =
      zip->Read(kMetadata, kConfigSizeBytesMax);
  // Keras reads archives without metadata.
  if (!absl::IsNotFound(metadata.status())) {
    ASSIGN_OR_RETURN(archive.metadata, std::move(metadata));
  }
  ASSIGN_OR_RETURN(archive.config, zip->Read(kConfig, kConfigSizeBytesMax));
  int64_t assets_bytes_left = kAssetsSizeBytesMax;
  for (const std::string& member : zip->List()) {
    absl::string_view name = member;
    if (!absl::ConsumePrefix(&name, kAssets) || absl::EndsWith(name, "/")) {
      continue;
    }
    // Keras on Windows writes backslashes.
    const std::string key = absl::StrReplaceAll(name, {{"\\", "/"}});
    std::string& asset = archive.assets[key];
    ASSIGN_OR_RETURN(asset, zip->Read(member, std::min(assets_bytes_left,
                                                       kConfigSizeBytesMax)));
    assets_bytes_left -= static_cast<int64_t>(asset.size());
  }
  ASSIGN_OR_RETURN(archive.weights,
                   ReadWeights(*zip, file_bytes, limit, archive));
  return archive;
}

absl::Status WriteKerasArchive(Disk* disk, absl::string_view path,
                               const KerasArchive& archive, absl::Time time) {
  const std::string metadata = absl::StrCat(
      "{\"keras_version\": \"", kKerasVersion, "\", \"date_saved\": \"",
      absl::FormatTime("%Y-%m-%d@%H:%M:%S", time, absl::UTCTimeZone()), "\"}");
  ASSIGN_OR_RETURN(const std::string bytes,
                   ZipArchiveOf({{kMetadata, metadata},
                                 {kConfig, archive.config},
                                 {kWeights, archive.weights}},
                                time));
  return ReplaceFile(disk, path, bytes);
}

absl::StatusOr<std::string> ReadKerasWeights(Disk* disk,
                                             absl::string_view path) {
  ASSIGN_OR_RETURN(std::string bytes, ReadFile(disk, path, kFileSizeBytesMax));
  if (!absl::StartsWith(bytes, kZipMagic)) return bytes;
  return absl::InvalidArgumentError(absl::StrCat(
      path, " is an archive of a whole model; rename it to *.keras"));
}

KerasFileKind KerasFileKindOf(absl::string_view path) {
  if (absl::EndsWith(path, ".keras")) return KerasFileKind::kArchive;
  if (absl::EndsWith(path, ".weights.h5")) return KerasFileKind::kWeights;
  if (absl::EndsWith(path, ".h5") || absl::EndsWith(path, ".hdf5")) {
    return KerasFileKind::kLegacy;
  }
  return KerasFileKind::kNone;
}

absl::StatusOr<KerasFileKind> FindKerasFileKind(Disk* disk,
                                                absl::string_view path) {
  const KerasFileKind kind = KerasFileKindOf(path);
  if (kind != KerasFileKind::kArchive) return kind;
  ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, disk->Open(path));
  ASSIGN_OR_RETURN(const bool is_hdf5, StartsWith(kHdf5Magic, *file));
  return is_hdf5 ? KerasFileKind::kLegacy : kind;
}

}  // namespace muster
