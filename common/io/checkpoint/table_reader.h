#ifndef COMMON_IO_CHECKPOINT_TABLE_READER_H_
#define COMMON_IO_CHECKPOINT_TABLE_READER_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/io/checkpoint/disk.h"

namespace muster {

// Calls `visit` for every entry of the table at `path`, in the order of the
// keys, block by block. Every byte of the file is accounted for: checksums are
// right, keys rise, and blocks lie one after another without gaps, so that no
// change of the file goes unnoticed. Takes memory for the largest block.
//   kNotFound       no such file
//   kDataLoss       the file is damaged; names it and the offset
//   kUnimplemented  a block is compressed
//   others          the first error that `visit` returns
absl::Status ReadTable(Disk* disk, absl::string_view path,
                       absl::FunctionRef<absl::Status(absl::string_view key,
                                                      absl::string_view value)>
                           visit);

}  // namespace muster

#endif  // COMMON_IO_CHECKPOINT_TABLE_READER_H_
