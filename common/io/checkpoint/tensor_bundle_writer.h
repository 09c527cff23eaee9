#ifndef COMMON_IO_CHECKPOINT_TENSOR_BUNDLE_WRITER_H_
#define COMMON_IO_CHECKPOINT_TENSOR_BUNDLE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/disk.h"
#include "common/io/checkpoint/tensor_slice.h"
#include "proto/checkpoint.pb.h"

namespace muster {

// Which of a checkpoint's data files a writer makes.
struct BundleShard {
  int index = 0;
  int count = 1;
};

// Writes one shard of a checkpoint in TensorFlow's format (TensorBundle V2).
//
// A checkpoint of N shards is written by N writers, in as many threads,
// processes or machines that see the same folder, and comes to be when
// PublishTensorBundle() is called after all of them have finished. A name is
// that of one tensor; slices of one tensor may be in several shards.
//
// Tensors go to the file as they come, so memory is taken for the names only.
// The first error stays: every later call returns it again, and nothing of the
// shard is left. Not thread-safe.
class TensorBundleWriter {
 public:
  // Makes the folder of `prefix` if need be.
  //   kInvalidArgument  no file name in `prefix`, or no such shard
  //   others            the disk's, as for everything below
  static absl::StatusOr<std::unique_ptr<TensorBundleWriter>> Create(
      Disk* disk, absl::string_view prefix, BundleShard shard = {});

  // Removes what was written unless Finish() returned OK.
  ~TensorBundleWriter();
  TensorBundleWriter(const TensorBundleWriter&) = delete;
  TensorBundleWriter& operator=(const TensorBundleWriter&) = delete;

  //   kInvalidArgument  `name` is empty or begins with a 0 byte, which is how
  //                     the keys of slices begin
  //   kAlreadyExists    `name` is there already
  absl::Status Add(absl::string_view name, const Tensor& tensor);

  // `tensor` is `slice` of a tensor of shape `full_shape`.
  //   kInvalidArgument  as Add(); or the slice is not within the shape, or has
  //                     another one than `tensor`; or other slices of `name`
  //                     were of another type
  //   kAlreadyExists    `name` has this slice already
  absl::Status AddSlice(absl::string_view name, const Shape& full_shape,
                        const TensorSlice& slice, const Tensor& tensor);

  // The same for a tensor that is not in memory as a whole: BeginTensor(), its
  // bytes row by row in any pieces, EndTensor(). Not for strings.
  //   kInvalidArgument  as AddSlice(); or another number of bytes came than
  //                     the type has
  absl::Status BeginTensor(absl::string_view name, const TensorType& full_type,
                           const TensorSlice& slice);
  absl::Status AppendBytes(absl::Span<const uint8_t> bytes);
  absl::Status EndTensor();

  // Syncs the data. Nothing is added afterwards.
  absl::Status Finish();

 private:
  TensorBundleWriter(Disk* disk, absl::string_view prefix, BundleShard shard);

  absl::Status Begin(absl::string_view name, const TensorType& full_type,
                     const TensorSlice& slice);
  absl::Status AddEntry(absl::string_view name, const TensorType& full_type,
                        const TensorSlice& slice);
  absl::Status AppendStrings(absl::Span<const std::string> strings);
  absl::Status WriteBytes(absl::Span<const uint8_t> bytes);
  absl::Status FlushBuffer();
  absl::Status WriteIndex();
  absl::Status Keep(absl::Status status);

  Disk* const disk_;
  const std::string folder_;
  const std::string data_path_;
  const std::string index_path_;

  std::unique_ptr<WritableFile> data_;
  const std::shared_ptr<Buffer> buffer_;
  size_t buffered_bytes_ = 0;  // Of buffer_; not yet in data_.
  int64_t offset_ = 0;
  // By key; those of partitioned tensors gather their slices.
  std::map<std::string, proto::BundleEntry> entries_;

  // The tensor that is being written.
  proto::BundleEntry* open_entry_ = nullptr;
  int64_t bytes_to_come_ = 0;
  uint32_t crc32c_ = 0;

  absl::Status status_;  // The first error.
  bool is_finished_ = false;
};

}  // namespace muster

#endif  // COMMON_IO_CHECKPOINT_TENSOR_BUNDLE_WRITER_H_
