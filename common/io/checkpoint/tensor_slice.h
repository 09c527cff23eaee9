#ifndef COMMON_IO_CHECKPOINT_TENSOR_SLICE_H_
#define COMMON_IO_CHECKPOINT_TENSOR_SLICE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/tensor/shape.h"
#include "proto/checkpoint.pb.h"

namespace muster {

// A box cut out of a tensor: where it begins in each dimension, and its shape.
struct TensorSlice {
  static TensorSlice Whole(const Shape& full);
  // Rows [begin, end) of the outermost dimension.
  static TensorSlice Rows(const Shape& full, int64_t begin, int64_t end);

  bool IsWhole(const Shape& full) const { return shape == full; }

  // As TensorFlow writes it: "0,2:0,6", a start and a length a dimension.
  std::string ToString() const;

  bool operator==(const TensorSlice&) const = default;

  absl::InlinedVector<int64_t, 4> starts;
  Shape shape;
};

//   kInvalidArgument  another rank, or not within `full`
absl::Status CheckSlice(const TensorSlice& slice, const Shape& full);

// What lies in both; none when that is no element.
std::optional<TensorSlice> Intersect(const TensorSlice& a,
                                     const TensorSlice& b);

// Whether `slices` hold every element of `full` once.
//   kInvalidArgument  two overlap, or elements are missing; says which
absl::Status CheckPartition(absl::Span<const TensorSlice> slices,
                            const Shape& full);

// Dimensions that are there as a whole have no length.
proto::BundleSlice EncodeSlice(const TensorSlice& slice, const Shape& full);
//   kInvalidArgument  as CheckSlice()
absl::StatusOr<TensorSlice> DecodeSlice(const proto::BundleSlice& encoded,
                                        const Shape& full);

// The key under which the index of a checkpoint has a slice of `name`; sorts
// before all names, by name and then by place. (TensorFlow's OrderedCode.)
std::string SliceKey(absl::string_view name, const proto::BundleSlice& slice);

// Goes through the memory that a source and a target, both row-major, have in
// common: runs of elements that are contiguous in both, rising in both.
class SliceRuns {
 public:
  struct Run {
    int64_t source = 0;  // Elements from the beginning of the source.
    int64_t target = 0;
    int64_t count = 0;
  };

  SliceRuns(const TensorSlice& source, const TensorSlice& target);

  // False after the last.
  bool Next(Run* run);

 private:
  struct Axis {
    int64_t extent = 0;
    int64_t source_stride = 0;
    int64_t target_stride = 0;
    int64_t index = 0;
  };

  Run run_;
  bool is_done_ = false;
  // Outside of a run, outermost first.
  absl::InlinedVector<Axis, 4> axes_;
};

}  // namespace muster

#endif  // COMMON_IO_CHECKPOINT_TENSOR_SLICE_H_
