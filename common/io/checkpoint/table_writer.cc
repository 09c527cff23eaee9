#include "common/io/checkpoint/table_writer.h"

#include <algorithm>
#include <utility>

#include "absl/types/span.h"
#include "common/core/base/hashes.h"
#include "common/core/base/status_macros.h"
#include "common/io/checkpoint/coding.h"
#include "common/io/checkpoint/table_format.h"

namespace muster {
namespace {

size_t CommonPrefix(absl::string_view a, absl::string_view b) {
  return std::mismatch(a.begin(), a.begin() + std::min(a.size(), b.size()),
                       b.begin())
             .first -
         a.begin();
}

// Returns a short key that is at least `last` and less than `next`.
std::string Separator(absl::string_view last, absl::string_view next) {
  const size_t common = CommonPrefix(last, next);
  if (common < std::min(last.size(), next.size())) {
    const uint8_t byte = last[common];
    if (byte < 0xff && byte + 1 < static_cast<uint8_t>(next[common])) {
      std::string separator(last.substr(0, common + 1));
      separator.back() = static_cast<char>(byte + 1);
      return separator;
    }
  }
  return std::string(last);
}

// Returns a short key that is at least `last`.
std::string Successor(absl::string_view last) {
  for (size_t i = 0; i < last.size(); ++i) {
    if (const uint8_t byte = last[i]; byte != 0xff) {
      std::string successor(last.substr(0, i + 1));
      successor.back() = static_cast<char>(byte + 1);
      return successor;
    }
  }
  return std::string(last);
}

}  // namespace

void TableBlock::Add(absl::string_view key, absl::string_view value) {
  size_t shared = 0;
  if (since_restart_ < restart_interval_) {
    shared = CommonPrefix(last_key_, key);
  } else {
    restarts_.push_back(static_cast<uint32_t>(content_.size()));
    since_restart_ = 0;
  }
  AppendVarint(shared, &content_);
  AppendVarint(key.size() - shared, &content_);
  AppendVarint(value.size(), &content_);
  content_.append(key.data() + shared, key.size() - shared);
  content_.append(value.data(), value.size());
  last_key_.assign(key.data(), key.size());
  ++since_restart_;
}

std::string TableBlock::Take() {
  for (const uint32_t restart : restarts_) AppendFixed(restart, &content_);
  AppendFixed(static_cast<uint32_t>(restarts_.size()), &content_);
  restarts_ = {0};
  since_restart_ = 0;
  last_key_.clear();
  return std::exchange(content_, std::string());
}

absl::Status TableWriter::Add(absl::string_view key, absl::string_view value) {
  if (!pending_handle_.empty()) AddPendingIndexEntry(Separator(last_key_, key));
  last_key_.assign(key.data(), key.size());
  data_.Add(key, value);
  return data_.size_bytes() >= kTableBlockBytes ? FlushData()
                                                : absl::OkStatus();
}

absl::Status TableWriter::Finish() {
  RETURN_IF_ERROR(FlushData());
  if (!pending_handle_.empty()) AddPendingIndexEntry(Successor(last_key_));
  std::string footer;
  RETURN_IF_ERROR(WriteBlock(TableBlock(1).Take(), &footer));
  RETURN_IF_ERROR(WriteBlock(index_.Take(), &footer));
  footer.resize(kTableFooterBytes - sizeof(kTableMagic));
  AppendFixed(kTableMagic, &footer);
  return file_->Append(absl::MakeConstSpan(
      reinterpret_cast<const uint8_t*>(footer.data()), footer.size()));
}

absl::Status TableWriter::FlushData() {
  if (data_.IsEmpty()) return absl::OkStatus();
  return WriteBlock(data_.Take(), &pending_handle_);
}

absl::Status TableWriter::WriteBlock(std::string block, std::string* handle) {
  AppendVarint(offset_, handle);
  AppendVarint(block.size(), handle);
  block.push_back(kTableUncompressed);
  AppendFixed(MaskCrc32c(Crc32c(block)), &block);
  offset_ += block.size();
  return file_->Append(absl::MakeConstSpan(
      reinterpret_cast<const uint8_t*>(block.data()), block.size()));
}

void TableWriter::AddPendingIndexEntry(absl::string_view separator) {
  index_.Add(separator, pending_handle_);
  pending_handle_.clear();
}

}  // namespace muster
