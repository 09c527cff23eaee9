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
#include "common/io/checkpoint/tensor_slice.h"
#include "common/io/storage/disk.h"

namespace muster {

namespace proto {
class BundleEntry;
}  // namespace proto

// Identifies the data file that one writer of a checkpoint writes.
struct BundleShard {
  int index = 0;
  int count = 1;
};

// Writes one shard of a checkpoint in TensorFlow's format (TensorBundle V2).
//
// A checkpoint of N shards is written by N writers on any threads, processes or
// machines with access to the same folder. It exists after
// PublishTensorBundle(), to be called when all writers have finished. A name
// belongs to one tensor; slices of a tensor may be in several shards.
//
// Tensors are written to the file as they are added; only names are kept in
// memory. After an error, every later call returns the same error, and the
// files of the shard are removed. Not thread-safe.
class TensorBundleWriter {
 public:
  // Creates the folder of `prefix` if it is missing.
  //   kInvalidArgument  `prefix` has no file name, or there is no such shard
  //   others            errors of the disk, as for all functions
  static absl::StatusOr<std::unique_ptr<TensorBundleWriter>> Create(
      Disk* disk, absl::string_view prefix, BundleShard shard = {});

  // Removes the files unless Finish() returned OK.
  ~TensorBundleWriter();
  TensorBundleWriter(const TensorBundleWriter&) = delete;
  TensorBundleWriter& operator=(const TensorBundleWriter&) = delete;

  // The file with the data of this shard, until the checkpoint is published.
  const std::string& data_path() const { return data_path_; }

  // Writes a whole tensor.
  //   kInvalidArgument  `name` is empty or begins with a 0 byte, which is
  //                     reserved for the keys of slices
  //   kAlreadyExists    `name` was added before
  absl::Status Add(absl::string_view name, const Tensor& tensor);

  // Writes `slice` of a tensor of shape `full_shape`.
  //   kInvalidArgument  as Add(); or the slice is not within the shape, has
  //                     another shape than `tensor`, or another type than
  //                     earlier slices of `name`
  //   kAlreadyExists    this slice of `name` was added before
  absl::Status AddSlice(absl::string_view name, const Shape& full_shape,
                        const TensorSlice& slice, const Tensor& tensor);

  // As AddSlice() for a tensor that is not in memory as a whole: BeginTensor(),
  // its bytes in row-major order in any pieces, EndTensor(). Not for strings.
  //   kInvalidArgument  as AddSlice(); or the number of bytes does not match
  //                     the type
  absl::Status BeginTensor(absl::string_view name, const TensorType& full_type,
                           const TensorSlice& slice);
  absl::Status AppendBytes(absl::Span<const uint8_t> bytes);
  absl::Status EndTensor();

  // Syncs the data. Nothing can be added afterwards.
  absl::Status Finish();

 private:
  TensorBundleWriter(Disk* disk, absl::string_view prefix, BundleShard shard,
                     std::string data_path);

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
  size_t buffered_bytes_ = 0;  // Bytes in buffer_ that are not in data_ yet.
  int64_t offset_ = 0;
  // By key. Entries of partitioned tensors list their slices.
  const std::unique_ptr<std::map<std::string, proto::BundleEntry>> entries_;

  // The tensor between BeginTensor() and EndTensor().
  proto::BundleEntry* open_entry_ = nullptr;
  int64_t remaining_bytes_ = 0;
  uint32_t crc32c_ = 0;

  absl::Status status_;  // The first error.
  bool is_finished_ = false;
};

}  // namespace muster

#endif  // COMMON_IO_CHECKPOINT_TENSOR_BUNDLE_WRITER_H_
