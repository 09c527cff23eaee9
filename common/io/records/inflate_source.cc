#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/io/records/byte_source.h"

namespace muster {
namespace {

constexpr size_t kInflateBufferBytes = size_t{64} << 10;
// zlib uses 32-bit sizes.
constexpr size_t kOutputBytesMax = size_t{1} << 30;
constexpr int kAnyFormatWindowBits = 15 + 32;  // Detects zlib or gzip.

class InflateSource final : public ByteSource {
 public:
  explicit InflateSource(std::unique_ptr<ByteSource> source)
      : source_(std::move(source)) {
    // Fails only if out of memory, as operator new would.
    MUSTER_CHECK(inflateInit2(&stream_, kAnyFormatWindowBits) == Z_OK);
  }
  ~InflateSource() override { inflateEnd(&stream_); }

  const std::string& name() const override { return source_->name(); }

  absl::StatusOr<size_t> Read(void* data, size_t size_bytes) override {
    size_t count = 0;
    while (count < size_bytes) {
      const size_t wanted = std::min(size_bytes - count, kOutputBytesMax);
      ASSIGN_OR_RETURN(const size_t read_count,
                       ReadSome(static_cast<Bytef*>(data) + count, wanted));
      if (read_count == 0) break;
      count += read_count;
    }
    return count;
  }

 private:
  absl::Status DamageError(absl::string_view what) const {
    return absl::DataLossError(absl::StrCat(name(), ": its compressed data ",
                                            what, " at byte ",
                                            read_bytes_ - stream_.avail_in));
  }

  // Reads at least one byte; returns 0 if the content has ended.
  absl::StatusOr<size_t> ReadSome(Bytef* data, size_t size_bytes) {
    stream_.next_out = data;
    stream_.avail_out = static_cast<uInt>(size_bytes);
    while (stream_.avail_out == size_bytes) {
      if (stream_.avail_in == 0) RETURN_IF_ERROR(Fill());
      if (stream_.avail_in == 0) {
        if (member_ended_) return size_t{0};
        return DamageError("ends too early,");
      }
      if (std::exchange(member_ended_, false)) inflateReset(&stream_);
      const int result = inflate(&stream_, Z_NO_FLUSH);
      member_ended_ = result == Z_STREAM_END;
      if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
        return DamageError(absl::StrCat(
            "is damaged (",
            stream_.msg != nullptr ? stream_.msg : "needs a dictionary", ")"));
      }
    }
    return size_bytes - stream_.avail_out;
  }

  absl::Status Fill() {
    ASSIGN_OR_RETURN(const size_t read_count,
                     source_->Read(buffer_.data(), buffer_.size()));
    stream_.next_in = buffer_.data();
    stream_.avail_in = static_cast<uInt>(read_count);
    read_bytes_ += static_cast<int64_t>(read_count);
    return absl::OkStatus();
  }

  const std::unique_ptr<ByteSource> source_;
  z_stream stream_ = {};
  std::array<Bytef, kInflateBufferBytes> buffer_;
  int64_t read_bytes_ = 0;
  bool member_ended_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> CreateInflateSource(
    std::unique_ptr<ByteSource> source) {
  return std::make_unique<InflateSource>(std::move(source));
}

}  // namespace muster
