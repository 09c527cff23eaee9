#ifndef COMMON_IO_CHECKPOINT_TENSOR_BUNDLE_READER_H_
#define COMMON_IO_CHECKPOINT_TENSOR_BUNDLE_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/bundle_index.h"
#include "common/io/checkpoint/disk.h"
#include "common/io/checkpoint/tensor_slice.h"

namespace muster {

// A tensor of a checkpoint, without its elements.
struct StoredTensor {
  std::string name;
  // kInvalid for one that Muster cannot hold: a dtype it does not have, or more
  // dimensions than it knows. Such a tensor is listed and not read.
  DType dtype = DType::kInvalid;
  Shape shape;
  int tensorflow_dtype = 0;
  // How it was cut when it was written; one slice when it was not.
  std::vector<TensorSlice> slices;
};

// Reads a checkpoint in TensorFlow's format, ours or TensorFlow's own.
//
// Nothing in the files is trusted. Open() checks the index in full and that the
// data files are as long as it says; every read checks the checksum of all that
// it touches, which is each stored slice in full, also when a part of it is
// asked for. Memory is taken for what is asked for and one piece.
//
// Errors of everything below:
//   kNotFound       a file is missing
//   kDataLoss       damaged; names the file, the offset and the tensor
//   kUnimplemented  compressed, big-endian, or a tensor Muster cannot hold
//   others          the disk's
//
// Thread-safe.
class TensorBundleReader {
 public:
  struct Options {
    // How much is read at once; a multiple of 64.
    size_t piece_bytes = 1 << 20;
  };

  // `prefix` as in "runs/7/ckpt-3".
  static absl::StatusOr<std::unique_ptr<TensorBundleReader>> Open(
      Disk* disk, absl::string_view prefix, const Options& options);
  static absl::StatusOr<std::unique_ptr<TensorBundleReader>> Open(
      Disk* disk, absl::string_view prefix) {
    return Open(disk, prefix, Options());
  }

  const std::string& prefix() const { return prefix_; }

  // Sorted by name.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }

  // Null when there is none. Lives as long as this.
  const StoredTensor* Find(absl::string_view name) const;

  //   kNotFound  no such tensor; names one that is spelled alike
  absl::StatusOr<Tensor> Read(absl::string_view name) const;

  // A part, whatever the tensor was cut into when it was written.
  //   kInvalidArgument  `slice` is not within the tensor
  absl::StatusOr<Tensor> ReadSlice(absl::string_view name,
                                   const TensorSlice& slice) const;

  // The same without taking memory for it: `sink` gets pieces of the slice,
  // each with its offset in the slice, in no promised order. Only when this has
  // returned OK is what it got known to be right. Not for strings.
  absl::Status ReadPieces(
      absl::string_view name, const TensorSlice& slice,
      absl::FunctionRef<absl::Status(int64_t offset_bytes,
                                     absl::Span<const uint8_t> bytes)>
          sink) const;

  // Reads everything once.
  absl::Status Verify() const;

 private:
  // Consecutive bytes of a data file.
  struct Extent {
    int shard = 0;
    int64_t offset = 0;
    int64_t size = 0;
    uint32_t masked_crc32c = 0;
  };
  using PieceVisitor =
      absl::FunctionRef<absl::Status(int64_t, absl::Span<const uint8_t>)>;

  TensorBundleReader(absl::string_view prefix, const Options& options)
      : prefix_(prefix), options_(options) {}

  absl::Status Load(Disk* disk);
  absl::Status AddTensor(const std::string& name,
                         const proto::BundleEntry& entry,
                         const BundleIndex& index);
  absl::Status AddSlices(const proto::BundleEntry& entry,
                         const BundleIndex& index, StoredTensor* tensor,
                         std::vector<Extent>* extents);
  absl::Status OpenDataFiles(Disk* disk, int shard_count);

  absl::StatusOr<const StoredTensor*> FindReadable(
      absl::string_view name) const;
  const std::vector<Extent>& ExtentsOf(const StoredTensor& tensor) const {
    return extents_[&tensor - tensors_.data()];
  }
  absl::Status Damage(const Extent& extent, absl::string_view name,
                      absl::string_view what) const;

  // Reads to where `place` says, piece by piece, and checks the checksum.
  absl::Status ReadNumbers(const StoredTensor& tensor, const Extent& extent,
                           absl::FunctionRef<uint8_t*(int64_t offset)> place,
                           PieceVisitor visit) const;
  absl::Status ReadRuns(const StoredTensor& tensor, const Extent& extent,
                        const TensorSlice& stored, const TensorSlice& wanted,
                        PieceVisitor sink) const;
  absl::Status ReadNumberSlice(const StoredTensor& tensor,
                               const TensorSlice& wanted, Tensor* result) const;
  absl::Status ReadStringSlice(const StoredTensor& tensor,
                               const TensorSlice& wanted, Tensor* result) const;
  absl::StatusOr<std::vector<std::string>> ReadStrings(
      const StoredTensor& tensor, const Extent& extent, int64_t count) const;

  const std::string prefix_;
  const Options options_;
  std::string index_path_;
  std::vector<std::string> data_paths_;
  std::vector<std::unique_ptr<ReadableFile>> data_;  // Null: nothing is in it.
  std::vector<StoredTensor> tensors_;
  std::vector<std::vector<Extent>> extents_;  // One for each slice of each.
};

}  // namespace muster

#endif  // COMMON_IO_CHECKPOINT_TENSOR_BUNDLE_READER_H_
