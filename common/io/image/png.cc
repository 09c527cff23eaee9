#include "common/io/image/png.h"

#include <png.h>

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

constexpr size_t kMessageBytes = 256;
// Limit for text, profiles and similar chunks, which are not used.
constexpr png_alloc_size_t kChunkBytesMax = 8 << 20;
constexpr png_uint_32 kChunkCountMax = 128;

// libpng's state for one image. libpng reports errors by a longjmp to the C
// function below that called it, past frames without destructors. Only those
// functions may call libpng.
struct PngDecoder {
  png_structp png;
  png_infop info;
  const unsigned char* content;
  size_t content_bytes;
  size_t read_bytes;
  jmp_buf back;
  char message[kMessageBytes];
};

[[noreturn]] void FailDecodingPng(png_structp png, png_const_charp message) {
  PngDecoder* const decoder = static_cast<PngDecoder*>(png_get_error_ptr(png));
  std::snprintf(decoder->message, kMessageBytes, "%s", message);
  longjmp(decoder->back, 1);
}

// Ignores warnings: the data can still be read.
void DropWarning(png_structp, png_const_charp) {}

void ReadBytes(png_structp png, png_bytep target, size_t size_bytes) {
  PngDecoder* const decoder = static_cast<PngDecoder*>(png_get_io_ptr(png));
  if (decoder->content_bytes - decoder->read_bytes < size_bytes) {
    png_error(png, "the file ends early");
  }
  std::memcpy(target, decoder->content + decoder->read_bytes, size_bytes);
  decoder->read_bytes += size_bytes;
}

bool ReadPngHeader(PngDecoder* decoder) {
  decoder->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, decoder,
                                        FailDecodingPng, DropWarning);
  if (decoder->png == nullptr) {
    std::snprintf(decoder->message, kMessageBytes, "no memory");
    return false;
  }
  if (setjmp(decoder->back) != 0) return false;
  decoder->info = png_create_info_struct(decoder->png);
  if (decoder->info == nullptr) png_error(decoder->png, "no memory");
  png_set_read_fn(decoder->png, decoder, ReadBytes);
  png_set_user_limits(decoder->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_set_chunk_malloc_max(decoder->png, kChunkBytesMax);
  png_set_chunk_cache_max(decoder->png, kChunkCountMax);
  png_read_info(decoder->png, decoder->info);
  return true;
}

// Requests rows of 8-bit samples in `channels` channels, or in two more if the
// file has colors that are converted to grayscale: libpng would convert in
// linear light if the file specifies its gamma.
bool ChoosePngOutput(PngDecoder* decoder, int channels) {
  if (setjmp(decoder->back) != 0) return false;
  const png_structp png = decoder->png;
  const png_infop info = decoder->info;
  const png_byte color_type = png_get_color_type(png, info);
  const bool has_alpha = (color_type & PNG_COLOR_MASK_ALPHA) != 0 ||
                         png_get_valid(png, info, PNG_INFO_tRNS) != 0;
  const bool has_color = (color_type & PNG_COLOR_MASK_COLOR) != 0;
  png_set_expand(png);
  png_set_strip_16(png);
  const bool wants_alpha = channels % 2 == 0;
  const bool wants_color = channels > 2;
  if (has_alpha && !wants_alpha) png_set_strip_alpha(png);
  if (!has_alpha && wants_alpha) {
    png_set_add_alpha(png, 0xff, PNG_FILLER_AFTER);
  }
  if (!has_color && wants_color) png_set_gray_to_rgb(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  return true;
}

bool ReadPngPixels(PngDecoder* decoder, png_bytepp rows) {
  if (setjmp(decoder->back) != 0) return false;
  png_read_image(decoder->png, rows);
  // Checks the rest of the file, so that a file without its end is an error.
  png_read_end(decoder->png, nullptr);
  return true;
}

class ScopedPngDecoder {
 public:
  explicit ScopedPngDecoder(absl::string_view content) {
    decoder_.content = reinterpret_cast<const unsigned char*>(content.data());
    decoder_.content_bytes = content.size();
  }
  ~ScopedPngDecoder() {
    png_destroy_read_struct(&decoder_.png, &decoder_.info, nullptr);
  }
  ScopedPngDecoder(const ScopedPngDecoder&) = delete;
  ScopedPngDecoder& operator=(const ScopedPngDecoder&) = delete;

  PngDecoder* get() { return &decoder_; }

  absl::Status Error() const {
    return absl::DataLossError(absl::StrCat("PNG: ", decoder_.message,
                                            ", at byte ", decoder_.read_bytes,
                                            " of ", decoder_.content_bytes));
  }

 private:
  PngDecoder decoder_ = {};
};

// Returns the number of channels in the file, after palettes and transparent
// colors are expanded.
int StoredChannels(const PngDecoder& decoder) {
  const png_byte color_type = png_get_color_type(decoder.png, decoder.info);
  const bool has_alpha =
      (color_type & PNG_COLOR_MASK_ALPHA) != 0 ||
      png_get_valid(decoder.png, decoder.info, PNG_INFO_tRNS) != 0;
  return ((color_type & PNG_COLOR_MASK_COLOR) != 0 ? 3 : 1) +
         (has_alpha ? 1 : 0);
}

// Converts three or four channels to one or two, in place.
void ConvertToGrey(int channels, std::vector<uint8_t>* pixels) {
  const size_t step = static_cast<size_t>(channels) + 2;
  uint8_t* out = pixels->data();
  for (size_t i = 0; i < pixels->size(); i += step) {
    const uint8_t* const in = pixels->data() + i;
    const uint8_t alpha = in[step - 1];
    *out++ = static_cast<uint8_t>(
        (299 * in[0] + 587 * in[1] + 114 * in[2] + 500) / 1000);
    if (channels == 2) *out++ = alpha;
  }
  pixels->resize(static_cast<size_t>(out - pixels->data()));
}

}  // namespace

absl::Status DecodePng(absl::string_view content,
                       const DecodeImageOptions& options, Image* image) {
  if (options.channels < 0 || options.channels > 4) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a PNG as ", options.channels, " channels; expected 0 to 4"));
  }
  ScopedPngDecoder decoder(content);
  if (!ReadPngHeader(decoder.get())) return decoder.Error();
  const png_structp png = decoder.get()->png;
  const png_infop info = decoder.get()->info;
  const int64_t height = png_get_image_height(png, info);
  const int64_t width = png_get_image_width(png, info);
  if (height > options.pixel_count_max / width) {
    return absl::ResourceExhaustedError(
        absl::StrCat("PNG: ", width, "x", height,
                     " pixels exceed the limit of ", options.pixel_count_max));
  }
  const int channels =
      options.channels != 0 ? options.channels : StoredChannels(*decoder.get());
  const bool becomes_grey = channels < 3 && (png_get_color_type(png, info) &
                                             PNG_COLOR_MASK_COLOR) != 0;
  if (!ChoosePngOutput(decoder.get(), channels)) return decoder.Error();
  const size_t row_bytes =
      static_cast<size_t>(width) *
      static_cast<size_t>(becomes_grey ? channels + 2 : channels);
  if (png_get_rowbytes(png, info) != row_bytes) {
    return absl::InternalError(absl::StrCat("PNG: rows of ",
                                            png_get_rowbytes(png, info),
                                            " bytes; expected ", row_bytes));
  }
  image->height = height;
  image->width = width;
  image->channels = channels;
  image->pixels.resize(static_cast<size_t>(height) * row_bytes);
  std::vector<png_bytep> rows(static_cast<size_t>(height));
  for (size_t y = 0; y < rows.size(); ++y) {
    rows[y] = image->pixels.data() + y * row_bytes;
  }
  if (!ReadPngPixels(decoder.get(), rows.data())) return decoder.Error();
  if (becomes_grey) ConvertToGrey(channels, &image->pixels);
  return absl::OkStatus();
}

absl::StatusOr<std::string> EncodePng(const Image& image) {
  if (image.height <= 0 || image.width <= 0 ||
      image.height > PNG_UINT_31_MAX / 8 || image.width > PNG_UINT_31_MAX / 8 ||
      image.channels < 1 || image.channels > 4 ||
      static_cast<int64_t>(image.pixels.size()) / image.channels /
              image.width !=
          image.height) {
    return absl::InvalidArgumentError(
        absl::StrCat("EncodePng: an image of ", image.height, "x", image.width,
                     "x", image.channels, " with ", image.pixels.size(),
                     " bytes; expected extents from 1 and 1 to 4 channels"));
  }
  constexpr png_uint_32 kFormats[] = {PNG_FORMAT_GRAY, PNG_FORMAT_GA,
                                      PNG_FORMAT_RGB, PNG_FORMAT_RGBA};
  png_image writer = {};
  writer.version = PNG_IMAGE_VERSION;
  writer.height = static_cast<png_uint_32>(image.height);
  writer.width = static_cast<png_uint_32>(image.width);
  writer.format = kFormats[image.channels - 1];
  png_alloc_size_t size_bytes = PNG_IMAGE_PNG_SIZE_MAX(writer);
  std::string content(size_bytes, '\0');
  if (png_image_write_to_memory(&writer, content.data(), &size_bytes, 0,
                                image.pixels.data(), 0, nullptr) == 0) {
    return absl::InternalError(absl::StrCat("EncodePng: ", writer.message));
  }
  content.resize(size_bytes);
  return content;
}

}  // namespace muster
