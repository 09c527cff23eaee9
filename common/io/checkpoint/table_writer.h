#ifndef COMMON_IO_CHECKPOINT_TABLE_WRITER_H_
#define COMMON_IO_CHECKPOINT_TABLE_WRITER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/io/storage/disk.h"

namespace muster {

// One block of a table: sorted entries, each without the prefix that its key
// shares with the previous key.
class TableBlock {
 public:
  // Every `restart_interval`-th key is written in full.
  explicit TableBlock(int restart_interval)
      : restart_interval_(restart_interval) {}

  // `key` must be greater than all previous keys.
  void Add(absl::string_view key, absl::string_view value);
  bool IsEmpty() const { return content_.empty(); }
  size_t size_bytes() const {
    return content_.size() + (restarts_.size() + 1) * sizeof(uint32_t);
  }

  // Returns the block and clears this object.
  std::string Take();

 private:
  const int restart_interval_;
  std::string content_;
  std::string last_key_;
  std::vector<uint32_t> restarts_ = {0};
  int since_restart_ = 0;
};

// Writes a sorted map of strings as a LevelDB table without compression and
// filters, byte for byte as TensorFlow writes the index of a checkpoint. Not
// thread-safe.
class TableWriter {
 public:
  // `file` is borrowed, must be empty, and must have no other writer.
  explicit TableWriter(WritableFile* file) : file_(file) {}

  // `key` must be greater than all previous keys. Returns errors of the file.
  absl::Status Add(absl::string_view key, absl::string_view value);

  // Call once after the last key. Does not sync.
  absl::Status Finish();

 private:
  absl::Status WriteBlock(std::string block, std::string* handle);
  absl::Status FlushData();
  void AddPendingIndexEntry(absl::string_view separator);

  WritableFile* const file_;
  uint64_t offset_ = 0;
  TableBlock data_{16};
  TableBlock index_{1};
  std::string last_key_;
  // The position of the last data block. Its index entry is written with the
  // next key, because it holds a short separator between the two.
  std::string pending_handle_;
};

}  // namespace muster

#endif  // COMMON_IO_CHECKPOINT_TABLE_WRITER_H_
