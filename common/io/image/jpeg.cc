#include "common/io/image/jpeg.h"

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

// After <cstdio>, which jpeglib.h requires.
#include <jpeglib.h>

// After jpeglib.h, which selects the codes.
#include <jerror.h>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

// A few kilobytes can request thousands of passes over a large image.
constexpr int kScanCountMax = 500;
constexpr int kScalesOf8Max = 8;

// libjpeg's state for one image. libjpeg reports errors by a longjmp to the C
// function below that called it, past frames without destructors. Only those
// functions may call libjpeg.
struct JpegDecoder {
  jpeg_decompress_struct info;
  jpeg_error_mgr errors;
  jpeg_progress_mgr progress;
  jmp_buf back;
  char message[JMSG_LENGTH_MAX];
  int error_code;
};

[[noreturn]] void FailDecodingJpeg(j_common_ptr info) {
  JpegDecoder* const decoder = static_cast<JpegDecoder*>(info->client_data);
  decoder->error_code = info->err->msg_code;
  info->err->format_message(info, decoder->message);
  longjmp(decoder->back, 1);
}

// libjpeg warns when it fills in missing pixels, and when it skips meaningless
// bytes. Only filled-in pixels are an error here.
bool IsDamage(int code) {
  return code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER ||
         code == JWRN_HUFF_BAD_CODE || code == JWRN_ARITH_BAD_CODE ||
         code == JWRN_MUST_RESYNC;
}

void TakeMessage(j_common_ptr info, int level) {
  if (level < 0 && IsDamage(info->err->msg_code)) FailDecodingJpeg(info);
}

void DropMessage(j_common_ptr) {}

void LimitScans(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <=
      kScanCountMax) {
    return;
  }
  JpegDecoder* const decoder = static_cast<JpegDecoder*>(info->client_data);
  decoder->error_code = 0;
  std::snprintf(decoder->message, sizeof(decoder->message),
                "it has more than %d scans", kScanCountMax);
  longjmp(decoder->back, 1);
}

bool ReadJpegHeader(JpegDecoder* decoder, const unsigned char* content,
                    unsigned long content_bytes) {
  j_decompress_ptr info = &decoder->info;
  info->err = jpeg_std_error(&decoder->errors);
  decoder->errors.error_exit = FailDecodingJpeg;
  decoder->errors.emit_message = TakeMessage;
  decoder->errors.output_message = DropMessage;
  info->client_data = decoder;
  if (setjmp(decoder->back) != 0) return false;
  jpeg_create_decompress(info);
  decoder->progress.progress_monitor = LimitScans;
  info->progress = &decoder->progress;
  jpeg_mem_src(info, content, content_bytes);
  jpeg_read_header(info, TRUE);
  return true;
}

// Sets info.output_width and info.output_height.
bool ChooseJpegOutput(JpegDecoder* decoder, J_COLOR_SPACE color_space,
                      unsigned scale_of_8) {
  j_decompress_ptr info = &decoder->info;
  if (setjmp(decoder->back) != 0) return false;
  info->out_color_space = color_space;
  info->scale_num = scale_of_8;
  info->scale_denom = kScalesOf8Max;
  info->dct_method = JDCT_IFAST;
  info->do_fancy_upsampling = TRUE;
  jpeg_calc_output_dimensions(info);
  return true;
}

bool ReadJpegPixels(JpegDecoder* decoder, unsigned char* pixels,
                    size_t row_bytes) {
  j_decompress_ptr info = &decoder->info;
  if (setjmp(decoder->back) != 0) return false;
  jpeg_start_decompress(info);
  while (info->output_scanline < info->output_height) {
    JSAMPROW row = pixels + info->output_scanline * row_bytes;
    jpeg_read_scanlines(info, &row, 1);
  }
  jpeg_finish_decompress(info);
  return true;
}

// Owns a JpegDecoder after ReadJpegHeader().
class ScopedJpegDecoder {
 public:
  explicit ScopedJpegDecoder(absl::string_view content) : content_(content) {}
  ~ScopedJpegDecoder() { jpeg_destroy_decompress(&decoder_.info); }
  ScopedJpegDecoder(const ScopedJpegDecoder&) = delete;
  ScopedJpegDecoder& operator=(const ScopedJpegDecoder&) = delete;

  JpegDecoder* get() { return &decoder_; }
  const jpeg_decompress_struct& info() const { return decoder_.info; }

  absl::Status Error() const {
    const jpeg_source_mgr* const source = decoder_.info.src;
    const size_t left = source == nullptr ? 0 : source->bytes_in_buffer;
    const std::string message =
        absl::StrCat("JPEG: ", decoder_.message, ", at byte ",
                     content_.size() - left, " of ", content_.size());
    switch (decoder_.error_code) {
      case JERR_OUT_OF_MEMORY:
        return absl::ResourceExhaustedError(message);
      case JERR_NOT_COMPILED:
      case JERR_BAD_PRECISION:
      case JERR_SOF_UNSUPPORTED:
      case JERR_CONVERSION_NOTIMPL:
      case JERR_ARITH_NOTIMPL:
        return absl::UnimplementedError(message);
      default:
        return absl::DataLossError(message);
    }
  }

 private:
  const absl::string_view content_;
  JpegDecoder decoder_ = {};
};

struct Output {
  J_COLOR_SPACE color_space = JCS_UNKNOWN;
  int read_channels = 0;  // Channels that libjpeg returns.
  int channels = 0;       // Channels that are kept.
};

absl::StatusOr<Output> OutputOf(const jpeg_decompress_struct& info,
                                int channels) {
  const bool is_grey = info.num_components == 1;
  if (channels == 0) channels = is_grey ? 1 : 3;
  if (channels != 1 && channels != 3 && channels != 4) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a JPEG as ", channels, " channels; expected 0, 1, 3 or 4"));
  }
  if (info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK) {
    return Output{JCS_CMYK, 4, channels};
  }
  if (channels == 1) return Output{JCS_GRAYSCALE, 1, 1};
  if (channels == 3) return Output{JCS_RGB, 3, 3};
  return Output{JCS_EXT_RGBA, 4, 4};
}

absl::Status CheckSize(const jpeg_decompress_struct& info,
                       int64_t pixel_count_max) {
  const int64_t pixels = int64_t{info.image_width} * int64_t{info.image_height};
  if (pixels <= pixel_count_max) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("JPEG: ", info.image_width, "x", info.image_height,
                   " pixels exceed the limit of ", pixel_count_max));
}

// Returns the scale at which the image is decoded, in eighths.
unsigned ScaleOf8(const jpeg_decompress_struct& info,
                  const DecodeImageOptions& options) {
  if (options.height_min <= 0 || options.width_min <= 0) return kScalesOf8Max;
  for (const unsigned scale : {1u, 2u, 4u}) {
    // Rounded up, as in libjpeg.
    const auto scaled = [scale](JDIMENSION extent) {
      return (int64_t{extent} * scale + kScalesOf8Max - 1) / kScalesOf8Max;
    };
    if (scaled(info.image_height) >= options.height_min &&
        scaled(info.image_width) >= options.width_min) {
      return scale;
    }
  }
  return kScalesOf8Max;
}

// Converts CMYK to `channels`, in place. Adobe's files store inverted values.
void ConvertInks(bool is_inverted, int channels, int64_t pixel_count,
                 std::vector<uint8_t>* pixels) {
  const uint8_t* in = pixels->data();
  uint8_t* out = pixels->data();
  for (int64_t i = 0; i < pixel_count; ++i, in += 4, out += channels) {
    int light[4];
    for (int c = 0; c < 4; ++c) light[c] = is_inverted ? in[c] : 255 - in[c];
    int rgb[3];
    for (int c = 0; c < 3; ++c) rgb[c] = light[c] * light[3] / 255;
    if (channels == 1) {
      out[0] = static_cast<uint8_t>(
          (299 * rgb[0] + 587 * rgb[1] + 114 * rgb[2] + 500) / 1000);
      continue;
    }
    for (int c = 0; c < 3; ++c) out[c] = static_cast<uint8_t>(rgb[c]);
    if (channels == 4) out[3] = 255;
  }
  pixels->resize(static_cast<size_t>(pixel_count * channels));
}

}  // namespace

absl::Status DecodeJpeg(absl::string_view content,
                        const DecodeImageOptions& options, Image* image) {
  ScopedJpegDecoder decoder(content);
  if (!ReadJpegHeader(decoder.get(),
                      reinterpret_cast<const unsigned char*>(content.data()),
                      content.size())) {
    return decoder.Error();
  }
  const jpeg_decompress_struct& info = decoder.info();
  RETURN_IF_ERROR(CheckSize(info, options.pixel_count_max));
  ASSIGN_OR_RETURN(const Output output, OutputOf(info, options.channels));
  if (!ChooseJpegOutput(decoder.get(), output.color_space,
                        ScaleOf8(info, options))) {
    return decoder.Error();
  }
  image->height = info.output_height;
  image->width = info.output_width;
  image->channels = output.channels;
  const int64_t pixel_count = image->height * image->width;
  image->pixels.resize(static_cast<size_t>(pixel_count * output.read_channels));
  if (!ReadJpegPixels(
          decoder.get(), image->pixels.data(),
          static_cast<size_t>(image->width * output.read_channels))) {
    return decoder.Error();
  }
  if (output.color_space == JCS_CMYK) {
    ConvertInks(info.saw_Adobe_marker != FALSE, output.channels, pixel_count,
                &image->pixels);
  }
  return absl::OkStatus();
}

namespace {

struct JpegEncoder {
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  jmp_buf back;
  char message[JMSG_LENGTH_MAX];
  unsigned char* bytes;  // From malloc().
  unsigned long size_bytes;
};

[[noreturn]] void FailEncodingJpeg(j_common_ptr info) {
  JpegEncoder* const encoder = static_cast<JpegEncoder*>(info->client_data);
  info->err->format_message(info, encoder->message);
  longjmp(encoder->back, 1);
}

bool EncodePixels(JpegEncoder* encoder, const unsigned char* pixels,
                  unsigned width, unsigned height, int channels, int quality,
                  bool progressive) {
  j_compress_ptr info = &encoder->info;
  info->err = jpeg_std_error(&encoder->errors);
  encoder->errors.error_exit = FailEncodingJpeg;
  encoder->errors.output_message = DropMessage;
  info->client_data = encoder;
  if (setjmp(encoder->back) != 0) return false;
  jpeg_create_compress(info);
  jpeg_mem_dest(info, &encoder->bytes, &encoder->size_bytes);
  info->image_width = width;
  info->image_height = height;
  info->input_components = channels;
  info->in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(info);
  jpeg_set_quality(info, quality, TRUE);
  if (progressive) jpeg_simple_progression(info);
  jpeg_start_compress(info, TRUE);
  const size_t row_bytes = size_t{width} * static_cast<size_t>(channels);
  while (info->next_scanline < info->image_height) {
    // libjpeg only reads, but takes a pointer to mutable bytes.
    JSAMPROW row =
        const_cast<unsigned char*>(pixels + info->next_scanline * row_bytes);
    jpeg_write_scanlines(info, &row, 1);
  }
  jpeg_finish_compress(info);
  return true;
}

}  // namespace

absl::StatusOr<std::string> EncodeJpeg(const Image& image,
                                       const EncodeJpegOptions& options) {
  const bool has_sane_size = image.height > 0 && image.width > 0 &&
                             image.height <= JPEG_MAX_DIMENSION &&
                             image.width <= JPEG_MAX_DIMENSION;
  if (!has_sane_size || (image.channels != 1 && image.channels != 3) ||
      static_cast<int64_t>(image.pixels.size()) !=
          image.height * image.width * image.channels) {
    return absl::InvalidArgumentError(absl::StrCat(
        "EncodeJpeg: an image of ", image.height, "x", image.width, "x",
        image.channels, " with ", image.pixels.size(), " bytes; expected 1 to ",
        JPEG_MAX_DIMENSION, " rows and columns and 1 or 3 channels"));
  }
  JpegEncoder encoder = {};
  const bool done = EncodePixels(
      &encoder, image.pixels.data(), static_cast<unsigned>(image.width),
      static_cast<unsigned>(image.height), image.channels, options.quality,
      options.progressive);
  std::string content;
  if (done) {
    content.assign(reinterpret_cast<const char*>(encoder.bytes),
                   encoder.size_bytes);
  }
  jpeg_destroy_compress(&encoder.info);
  std::free(encoder.bytes);
  if (!done) {
    return absl::InternalError(absl::StrCat("EncodeJpeg: ", encoder.message));
  }
  return content;
}

}  // namespace muster
