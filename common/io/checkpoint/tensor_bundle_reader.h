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
#include "common/io/checkpoint/tensor_slice.h"
#include "common/io/storage/disk.h"

namespace muster {

struct BundleIndex;
namespace proto {
class BundleEntry;
}  // namespace proto

// The description of a tensor of a checkpoint.
struct StoredTensor {
  std::string name;
  // kInvalid for a dtype or a rank that Muster does not support. Such a tensor
  // is listed but cannot be read.
  DType dtype = DType::kInvalid;
  Shape shape;
  int tensorflow_dtype = 0;
  // The slices in which it was written; one if it was not partitioned.
  std::vector<TensorSlice> slices;
};

// Reads a checkpoint in TensorFlow's format (TensorBundle V2), written by
// Muster or by TensorFlow.
//
// The files are not trusted. Open() verifies the whole index and the sizes of
// the data files. Every read verifies the checksums of the stored slices that
// it touches, which are read in full even if only a part is requested. Uses
// memory for the result and one piece.
//
// Errors of all functions:
//   kNotFound       a file is missing
//   kDataLoss       a file is damaged; the message names the file, the offset
//                   and the tensor
//   kUnimplemented  compressed, big-endian, or a tensor that Muster does not
//                   support
//   others          errors of the disk
//
// Thread-safe.
class TensorBundleReader {
 public:
  struct Options {
    // The size of one read; a multiple of 64.
    size_t piece_bytes = 1 << 20;
  };

  // Opens the checkpoint `prefix`, for example "runs/7/ckpt-3".
  static absl::StatusOr<std::unique_ptr<TensorBundleReader>> Open(
      Disk* disk, absl::string_view prefix, const Options& options);
  static absl::StatusOr<std::unique_ptr<TensorBundleReader>> Open(
      Disk* disk, absl::string_view prefix) {
    return Open(disk, prefix, Options());
  }

  const std::string& prefix() const { return prefix_; }

  // Sorted by name.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }

  // Returns null if there is no such tensor. Lives as long as this object.
  const StoredTensor* Find(absl::string_view name) const;

  // Reads a whole tensor.
  //   kNotFound  no such tensor; the message suggests a similar name
  absl::StatusOr<Tensor> Read(absl::string_view name) const;

  // Reads a slice, independent of the slices in which the tensor was written.
  //   kInvalidArgument  `slice` is not within the tensor
  absl::StatusOr<Tensor> ReadSlice(absl::string_view name,
                                   const TensorSlice& slice) const;

  // As ReadSlice(), without allocating memory for the result. `sink` receives
  // pieces with their offsets in the slice, in any order. The data is verified
  // only when this has returned OK. Not for strings.
  absl::Status ReadPieces(
      absl::string_view name, const TensorSlice& slice,
      absl::FunctionRef<absl::Status(int64_t offset_bytes,
                                     absl::Span<const uint8_t> bytes)>
          sink) const;

  // Reads and verifies everything.
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

  // Reads to the memory that `place` returns, piece by piece, and verifies the
  // checksum.
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
  std::vector<std::unique_ptr<ReadableFile>> data_;  // Null for an empty shard.
  std::vector<StoredTensor> tensors_;
  std::vector<std::vector<Extent>> extents_;  // [tensor][slice]
};

}  // namespace muster

#endif  // COMMON_IO_CHECKPOINT_TENSOR_BUNDLE_READER_H_
