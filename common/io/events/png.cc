#include "common/io/events/png.h"

#include <zlib.h>

#include <cstring>

#include "absl/strings/string_view.h"
#include "common/core/base/check.h"

namespace muster {
namespace {

constexpr char kSignature[] = "\x89PNG\r\n\x1a\n";
constexpr uint8_t kBitDepth = 8;

void AppendBigEndian(uint32_t value, std::string* out) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    out->push_back(static_cast<char>(value >> shift));
  }
}

// Length, type, content, and the checksum of type and content.
void AppendChunk(absl::string_view type, absl::string_view content,
                 std::string* out) {
  AppendBigEndian(static_cast<uint32_t>(content.size()), out);
  const size_t begin = out->size();
  out->append(type.data(), type.size());
  out->append(content.data(), content.size());
  const uint32_t crc = static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(out->data() + begin),
            static_cast<uInt>(out->size() - begin)));
  AppendBigEndian(crc, out);
}

char ColorType(int channel_count) {
  switch (channel_count) {
    case 1:
      return 0;
    case 3:
      return 2;
    default:
      return 6;
  }
}

}  // namespace

std::string EncodePng(int width, int height, int channel_count,
                      absl::Span<const uint8_t> pixels) {
  MUSTER_CHECK(channel_count == 1 || channel_count == 3 || channel_count == 4);
  const size_t row_bytes = static_cast<size_t>(width) * channel_count;
  MUSTER_CHECK(pixels.size() == row_bytes * height);

  std::string header;
  AppendBigEndian(static_cast<uint32_t>(width), &header);
  AppendBigEndian(static_cast<uint32_t>(height), &header);
  header.push_back(static_cast<char>(kBitDepth));
  header.push_back(ColorType(channel_count));
  header.append(3, '\0');  // Deflate, standard filters, not interlaced.

  // Every row begins with its filter type: none.
  std::string rows;
  rows.reserve((row_bytes + 1) * height);
  for (int row = 0; row < height; ++row) {
    rows.push_back('\0');
    rows.append(reinterpret_cast<const char*>(pixels.data()) + row * row_bytes,
                row_bytes);
  }
  uLongf size = compressBound(rows.size());
  std::string packed(size, '\0');
  MUSTER_CHECK(compress(reinterpret_cast<Bytef*>(&packed[0]), &size,
                        reinterpret_cast<const Bytef*>(rows.data()),
                        rows.size()) == Z_OK);
  packed.resize(size);

  std::string png(kSignature, sizeof(kSignature) - 1);
  AppendChunk("IHDR", header, &png);
  AppendChunk("IDAT", packed, &png);
  AppendChunk("IEND", "", &png);
  return png;
}

}  // namespace muster
