#include "common/io/records/deflate_sink.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

constexpr size_t kDeflateBufferBytes = size_t{64} << 10;
// zlib uses 32-bit sizes.
constexpr size_t kInputBytesMax = size_t{1} << 30;
constexpr int kZlibWindowBits = 15;
constexpr int kGzipWindowBits = 15 + 16;  // Selects gzip.
constexpr int kMemoryLevel = 8;

class DeflateSink final : public ByteSink {
 public:
  DeflateSink(std::unique_ptr<ByteSink> sink, DeflateFormat format)
      : sink_(std::move(sink)) {
    const int result = deflateInit2(
        &stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
        format == DeflateFormat::kGzip ? kGzipWindowBits : kZlibWindowBits,
        kMemoryLevel, Z_DEFAULT_STRATEGY);
    // Fails only if out of memory, as operator new would.
    MUSTER_CHECK(result == Z_OK);
  }
  ~DeflateSink() override {
    (void)Close();
    deflateEnd(&stream_);
  }

  absl::Status Append(absl::string_view bytes) override {
    if (is_closed_) return absl::FailedPreconditionError("the sink is closed");
    while (!bytes.empty()) {
      const absl::string_view part = bytes.substr(0, kInputBytesMax);
      RETURN_IF_ERROR(Compress(part, Z_NO_FLUSH));
      bytes.remove_prefix(part.size());
    }
    return absl::OkStatus();
  }

  absl::Status Flush() override {
    if (!is_closed_) RETURN_IF_ERROR(Compress("", Z_SYNC_FLUSH));
    return sink_->Flush();
  }

  absl::Status Close() override {
    if (!std::exchange(is_closed_, true)) {
      RETURN_IF_ERROR(Compress("", Z_FINISH));
    }
    return sink_->Close();
  }

 private:
  absl::Status Compress(absl::string_view bytes, int flush) {
    RETURN_IF_ERROR(status_);
    // zlib only reads, but takes a pointer to mutable bytes.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream_.next_out = buffer_.data();
      stream_.avail_out = static_cast<uInt>(buffer_.size());
      deflate(&stream_, flush);
      const size_t made = buffer_.size() - stream_.avail_out;
      status_ = sink_->Append(absl::string_view(
          reinterpret_cast<const char*>(buffer_.data()), made));
      RETURN_IF_ERROR(status_);
    } while (stream_.avail_out == 0);
    return absl::OkStatus();
  }

  const std::unique_ptr<ByteSink> sink_;
  z_stream stream_ = {};
  std::array<Bytef, kDeflateBufferBytes> buffer_;
  absl::Status status_;
  bool is_closed_ = false;
};

}  // namespace

std::unique_ptr<ByteSink> CreateDeflateSink(std::unique_ptr<ByteSink> sink,
                                            DeflateFormat format) {
  return std::make_unique<DeflateSink>(std::move(sink), format);
}

}  // namespace muster
