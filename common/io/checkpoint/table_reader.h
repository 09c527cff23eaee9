#ifndef COMMON_IO_CHECKPOINT_TABLE_READER_H_
#define COMMON_IO_CHECKPOINT_TABLE_READER_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/io/storage/disk.h"

namespace muster {

// Reads LevelDB's table format as TensorFlow writes it. Source:
// https://github.com/google/leveldb/blob/main/doc/table_format.md
//
// Calls `visit` for every entry of the table at `path` in the order of keys,
// block by block. Verifies every byte of the file: checksums match, keys
// ascend, and blocks are contiguous, so every change of the file is detected.
// Uses memory for the largest block.
//   kNotFound       the file does not exist
//   kDataLoss       the file is damaged; the message names it and the offset
//   kUnimplemented  a block is compressed, or the table has a filter
//   others          the first error of `visit`
absl::Status ReadTable(Disk* disk, absl::string_view path,
                       absl::FunctionRef<absl::Status(absl::string_view key,
                                                      absl::string_view value)>
                           visit);

}  // namespace muster

#endif  // COMMON_IO_CHECKPOINT_TABLE_READER_H_
