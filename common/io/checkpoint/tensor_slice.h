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

namespace muster {

namespace proto {
class BundleSlice;
}  // namespace proto

// A box within a tensor: its start in each dimension, and its shape.
struct TensorSlice {
  static TensorSlice Whole(const Shape& full);
  // Rows [begin, end) of the outermost dimension.
  static TensorSlice Rows(const Shape& full, int64_t begin, int64_t end);

  bool IsWhole(const Shape& full) const { return shape == full; }

  // Returns TensorFlow's notation "0,2:0,6": a start and a length for each
  // dimension.
  std::string ToString() const;

  bool operator==(const TensorSlice&) const = default;

  absl::InlinedVector<int64_t, 4> starts;
  Shape shape;
};

// Checks that `slice` is within `full`.
//   kInvalidArgument  another rank, or not within `full`
absl::Status CheckSlice(const TensorSlice& slice, const Shape& full);

// Returns the intersection; nothing if it is empty.
std::optional<TensorSlice> Intersect(const TensorSlice& a,
                                     const TensorSlice& b);

// Checks that `slices` cover every element of `full` exactly once.
//   kInvalidArgument  two overlap, or elements are missing; the message says
//                     which
absl::Status CheckPartition(absl::Span<const TensorSlice> slices,
                            const Shape& full);

// Whole dimensions are encoded without a length.
proto::BundleSlice EncodeSlice(const TensorSlice& slice, const Shape& full);
//   kInvalidArgument  as CheckSlice()
absl::StatusOr<TensorSlice> DecodeSlice(const proto::BundleSlice& encoded,
                                        const Shape& full);

// Returns the key of a slice of `name` in the index of a checkpoint. Sorts
// before all names, by name and then by position. (TensorFlow's OrderedCode.)
std::string SliceKey(absl::string_view name, const proto::BundleSlice& slice);
// True if `key`, which is not empty, is the key of a slice.
inline bool IsSliceKey(absl::string_view key) { return key[0] == '\0'; }

// Iterates over the elements that a source and a target, both row-major, have
// in common, in runs that are contiguous in both and ascend in both.
class SliceRuns {
 public:
  struct Run {
    int64_t source = 0;  // In elements from the start of the source.
    int64_t target = 0;
    int64_t count = 0;
  };

  SliceRuns(const TensorSlice& source, const TensorSlice& target);

  // Returns false after the last run.
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
  // The dimensions outside of a run, outermost first.
  absl::InlinedVector<Axis, 4> axes_;
};

}  // namespace muster

#endif  // COMMON_IO_CHECKPOINT_TENSOR_SLICE_H_
