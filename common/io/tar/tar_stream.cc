#include "common/io/tar/tar_stream.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

constexpr size_t kBlockBytes = 512;
constexpr int64_t kSizeReserve = kBlockBytes;  // For the padding.
using Block = std::array<uint8_t, kBlockBytes>;

// A field of a header.
struct Field {
  size_t offset;
  size_t size;
};
constexpr Field kName = {0, 100};
constexpr Field kMode = {100, 8};
constexpr Field kOwner = {108, 8};
constexpr Field kGroup = {116, 8};
constexpr Field kSize = {124, 12};
constexpr Field kTime = {136, 12};
constexpr Field kChecksum = {148, 8};
constexpr size_t kTypeOffset = 156;
constexpr Field kMagic = {257, 8};
constexpr Field kPrefix = {345, 155};

constexpr absl::string_view kGnuMagic("ustar  \0", 8);
constexpr absl::string_view kPosixMagic("ustar\0", 6);

constexpr char kRegular = '0';
constexpr char kRegularOld = '\0';
constexpr char kFolder = '5';
constexpr char kLongName = 'L';  // Its content is the name of the next file.
constexpr absl::string_view kLongNameOfHeader = "././@LongLink";

absl::string_view TextOf(const Block& block, Field field) {
  const absl::string_view text(
      reinterpret_cast<const char*>(block.data() + field.offset), field.size);
  return text.substr(0, text.find('\0'));
}

int64_t PaddingOf(int64_t size_bytes) {
  constexpr auto kBytes = static_cast<int64_t>(kBlockBytes);
  return (kBytes - size_bytes % kBytes) % kBytes;
}

// Returns the sum of the header's bytes, with spaces in place of the checksum.
int64_t ChecksumOf(Block block) {
  std::fill_n(block.begin() + kChecksum.offset, kChecksum.size, ' ');
  return std::accumulate(block.begin(), block.end(), int64_t{0});
}

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat("the archive is damaged: expected ", what));
}

// Reads octal digits, or a binary number of which the first bit is set.
absl::StatusOr<int64_t> NumberOf(const Block& block, Field field) {
  const uint8_t* const bytes = block.data() + field.offset;
  int64_t number = 0;
  if ((bytes[0] & 0x80) != 0) {
    for (size_t i = 0; i < field.size; ++i) {
      const int64_t digit = i == 0 ? bytes[0] & 0x7f : bytes[i];
      if (number > std::numeric_limits<int64_t>::max() >> 8) {
        return Damaged("a number below 2^63");
      }
      number = number << 8 | digit;
    }
    return number;
  }
  for (const char letter : TextOf(block, field)) {
    if (letter == ' ') continue;
    if (letter < '0' || letter > '7') return Damaged("octal digits");
    number = number * 8 + (letter - '0');
  }
  return number;
}

void SetText(absl::string_view text, Field field, Block& block) {
  std::memcpy(block.data() + field.offset, text.data(),
              std::min(text.size(), field.size));
}

void SetNumber(int64_t number, Field field, Block& block) {
  const std::string octal = absl::StrFormat(
      "%0*o", static_cast<int>(field.size) - 1, static_cast<uint64_t>(number));
  if (octal.size() < field.size) {
    SetText(octal, field, block);
    return;
  }
  for (size_t i = field.size; i-- > 0; number >>= 8) {
    block[field.offset + i] = static_cast<uint8_t>(number & 0xff);
  }
  block[field.offset] |= 0x80;
}

// Returns the path below a folder that an archive names.
absl::StatusOr<std::string> CheckedName(absl::string_view name) {
  std::string path;
  for (const absl::string_view part : absl::StrSplit(name, '/')) {
    if (part == ".") continue;
    if (part.empty() || part == "..") {
      return absl::InvalidArgumentError(
          absl::StrCat("the archive has the name \"", name,
                       "\"; expected a path below the folder"));
    }
    absl::StrAppend(&path, path.empty() ? "" : "/", part);
  }
  return path;
}

bool IsEnd(const Block& block) {
  return std::all_of(block.begin(), block.end(),
                     [](uint8_t byte) { return byte == 0; });
}

}  // namespace

absl::Status TarReader::Fill(absl::Span<uint8_t> bytes) {
  while (!bytes.empty()) {
    ASSIGN_OR_RETURN(const size_t count, source_(bytes));
    if (count == 0) {
      return absl::DataLossError("the archive ends before its last block");
    }
    bytes.remove_prefix(count);
  }
  return absl::OkStatus();
}

absl::Status TarReader::Read(absl::Span<uint8_t> bytes) {
  RETURN_IF_ERROR(Fill(bytes));
  rest_bytes_ -= static_cast<int64_t>(bytes.size());
  return absl::OkStatus();
}

absl::Status TarReader::SkipFile() {
  std::vector<uint8_t> skipped(1 << 16);
  for (int64_t rest = rest_bytes_ + padding_bytes_; rest > 0;) {
    const auto count = static_cast<size_t>(
        std::min(rest, static_cast<int64_t>(skipped.size())));
    RETURN_IF_ERROR(Fill(absl::MakeSpan(skipped).first(count)));
    rest -= static_cast<int64_t>(count);
  }
  rest_bytes_ = padding_bytes_ = 0;
  return absl::OkStatus();
}

absl::StatusOr<std::string> TarReader::ReadLongName(int64_t size_bytes) {
  if (size_bytes > static_cast<int64_t>(kTarNameLengthMax)) {
    return Damaged(absl::StrCat("a name of at most ", kTarNameLengthMax,
                                " bytes, not ", size_bytes));
  }
  std::string name(static_cast<size_t>(size_bytes), '\0');
  RETURN_IF_ERROR(Read(
      absl::MakeSpan(reinterpret_cast<uint8_t*>(name.data()), name.size())));
  name.resize(std::min(name.size(), name.find('\0')));
  return name;
}

absl::StatusOr<std::optional<TarFile>> TarReader::Next() {
  std::string long_name;
  while (true) {
    RETURN_IF_ERROR(SkipFile());
    Block block;
    // The source may return a part of the block, which Fill() completes.
    ASSIGN_OR_RETURN(const size_t count, source_(absl::MakeSpan(block)));
    has_ended_between_files_ = count == 0;
    RETURN_IF_ERROR(Fill(absl::MakeSpan(block).subspan(count)));
    if (IsEnd(block)) return std::nullopt;
    ASSIGN_OR_RETURN(const int64_t checksum, NumberOf(block, kChecksum));
    if (checksum != ChecksumOf(block)) {
      return Damaged("the checksum of a header");
    }
    const char type = static_cast<char>(block[kTypeOffset]);
    ASSIGN_OR_RETURN(const int64_t size, NumberOf(block, kSize));
    if (size > std::numeric_limits<int64_t>::max() - kSizeReserve) {
      return Damaged("a file of less than 2^63 bytes");
    }
    rest_bytes_ = size;
    padding_bytes_ = PaddingOf(size);
    if (type == kLongName) {
      ASSIGN_OR_RETURN(long_name, ReadLongName(size));
      continue;
    }
    std::string name = long_name;
    if (name.empty()) {
      // Only POSIX has a prefix; GNU has times in this place.
      const absl::string_view prefix =
          TextOf(block, {kMagic.offset, kPosixMagic.size()}) == "ustar"
              ? TextOf(block, kPrefix)
              : "";
      name =
          absl::StrCat(prefix, prefix.empty() ? "" : "/", TextOf(block, kName));
    }
    long_name.clear();
    if (type == kFolder) continue;
    if (type != kRegular && type != kRegularOld) {
      return absl::InvalidArgumentError(
          absl::StrCat("the archive has \"", name, "\" of type '",
                       std::string(1, type), "'; expected files and folders"));
    }
    ASSIGN_OR_RETURN(name, CheckedName(name));
    return TarFile{.name = std::move(name), .size_bytes = size};
  }
}

absl::Status TarWriter::AddHeader(absl::string_view name, int64_t size_bytes,
                                  char type) {
  Block block = {};
  SetText(name, kName, block);
  SetNumber(0644, kMode, block);
  SetNumber(0, kOwner, block);
  SetNumber(0, kGroup, block);
  SetNumber(size_bytes, kSize, block);
  SetNumber(0, kTime, block);
  block[kTypeOffset] = static_cast<uint8_t>(type);
  SetText(kGnuMagic, kMagic, block);
  // Six digits, a zero and a space.
  SetText(absl::StrFormat("%06o", ChecksumOf(block)), kChecksum, block);
  block[kChecksum.offset + kChecksum.size - 1] = ' ';
  written_bytes_ = 0;
  return sink_(block);
}

absl::Status TarWriter::Pad() {
  const std::vector<uint8_t> zeros(PaddingOf(written_bytes_), 0);
  written_bytes_ = 0;
  return sink_(zeros);
}

absl::Status TarWriter::Begin(const TarFile& file) {
  RETURN_IF_ERROR(Pad());
  if (file.name.size() >= kTarNameLengthMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.name, ": expected a name of less than ",
                     kTarNameLengthMax, " bytes"));
  }
  if (file.name.size() >= kName.size) {
    RETURN_IF_ERROR(AddHeader(kLongNameOfHeader,
                              static_cast<int64_t>(file.name.size()) + 1,
                              kLongName));
    RETURN_IF_ERROR(Append(
        absl::MakeSpan(reinterpret_cast<const uint8_t*>(file.name.c_str()),
                       file.name.size() + 1)));
    RETURN_IF_ERROR(Pad());
  }
  return AddHeader(absl::string_view(file.name).substr(0, kName.size - 1),
                   file.size_bytes, kRegular);
}

absl::Status TarWriter::Append(absl::Span<const uint8_t> bytes) {
  written_bytes_ += static_cast<int64_t>(bytes.size());
  return sink_(bytes);
}

absl::Status TarWriter::Finish() {
  RETURN_IF_ERROR(Pad());
  const std::array<uint8_t, 2 * kBlockBytes> end = {};
  return sink_(end);
}

}  // namespace muster
