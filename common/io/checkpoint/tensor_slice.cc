#include "common/io/checkpoint/tensor_slice.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "proto/checkpoint.pb.h"

namespace muster {
namespace {

// TensorFlow's OrderedCode: encoded byte strings compare as the encoded values.

// Ends the string with 0 1. Within it, 0 is written as 0 255 and 255 as 255 0.
void AppendOrderedString(absl::string_view value, std::string* out) {
  for (const char byte : value) {
    out->push_back(byte);
    if (byte == '\0') out->push_back('\xff');
    if (byte == '\xff') out->push_back('\0');
  }
  out->append("\0\1", 2);
}

// The number of bytes, then the bytes, highest first.
void AppendOrderedCount(uint64_t value, std::string* out) {
  std::string bytes;
  for (; value > 0; value >>= 8) bytes.push_back(static_cast<char>(value));
  out->push_back(static_cast<char>(bytes.size()));
  out->append(bytes.rbegin(), bytes.rend());
}

// The sign, a one bit for every byte after the first, a zero bit, and the
// number, highest byte first. All bits are inverted for negative numbers.
void AppendOrderedSigned(int64_t value, std::string* out) {
  const uint64_t magnitude = value < 0 ? ~value : value;
  const int bits = magnitude == 0 ? 0 : 64 - __builtin_clzll(magnitude);
  const int length = bits / 7 + 1;  // n bytes hold 7 n - 1 bits of payload.
  uint8_t bytes[10] = {};
  for (int i = 0; i < std::min(length, 8); ++i) {
    bytes[length - 1 - i] = static_cast<uint8_t>(magnitude >> (8 * i));
  }
  for (int bit = 0; bit < length; ++bit) bytes[bit / 8] |= 0x80 >> (bit % 8);
  for (int i = 0; i < length; ++i) {
    out->push_back(static_cast<char>(value < 0 ? ~bytes[i] : bytes[i]));
  }
}

}  // namespace

TensorSlice TensorSlice::Whole(const Shape& full) {
  TensorSlice slice;
  slice.starts.assign(full.rank(), 0);
  slice.shape = full;
  return slice;
}

TensorSlice TensorSlice::Rows(const Shape& full, int64_t begin, int64_t end) {
  TensorSlice slice = Whole(full);
  slice.starts[0] = begin;
  slice.shape.set_dim(0, end - begin);
  return slice;
}

std::string TensorSlice::ToString() const {
  std::vector<std::string> extents;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    extents.push_back(absl::StrCat(starts[axis], ",", shape.dim(axis)));
  }
  return absl::StrJoin(extents, ":");
}

absl::Status CheckSlice(const TensorSlice& slice, const Shape& full) {
  bool fits = slice.shape.rank() == full.rank() &&
              slice.starts.size() == static_cast<size_t>(full.rank());
  for (int axis = 0; fits && axis < full.rank(); ++axis) {
    const int64_t start = slice.starts[axis];
    const int64_t length = slice.shape.dim(axis);
    fits = start >= 0 && length >= 0 && start <= full.dim(axis) &&
           length <= full.dim(axis) - start;
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "slice ", slice.ToString(), " is not within ", full.ToString()));
}

std::optional<TensorSlice> Intersect(const TensorSlice& a,
                                     const TensorSlice& b) {
  MUSTER_CHECK(a.shape.rank() == b.shape.rank());
  TensorSlice both = a;
  for (int axis = 0; axis < a.shape.rank(); ++axis) {
    const int64_t begin = std::max(a.starts[axis], b.starts[axis]);
    const int64_t end = std::min(a.starts[axis] + a.shape.dim(axis),
                                 b.starts[axis] + b.shape.dim(axis));
    if (begin >= end) return std::nullopt;
    both.starts[axis] = begin;
    both.shape.set_dim(axis, end - begin);
  }
  return both;
}

absl::Status CheckPartition(absl::Span<const TensorSlice> slices,
                            const Shape& full) {
  if (full.element_count() == 0) return absl::OkStatus();
  std::vector<const TensorSlice*> sorted;
  int64_t element_count = 0;
  for (const TensorSlice& slice : slices) {
    sorted.push_back(&slice);
    if (slice.shape.element_count() > full.element_count() - element_count) {
      return absl::InvalidArgumentError(absl::StrCat(
          "its slices hold more elements than its shape ", full.ToString()));
    }
    element_count += slice.shape.element_count();
  }
  if (full.rank() > 0) {
    std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
      return a->starts[0] < b->starts[0];
    });
  }
  for (size_t i = 0; i < sorted.size(); ++i) {
    for (size_t j = i + 1; j < sorted.size(); ++j) {
      const bool is_beyond =
          full.rank() > 0 && sorted[j]->starts[0] >=
                                 sorted[i]->starts[0] + sorted[i]->shape.dim(0);
      if (is_beyond) break;
      if (Intersect(*sorted[i], *sorted[j]).has_value()) {
        return absl::InvalidArgumentError(
            absl::StrCat("its slices ", sorted[i]->ToString(), " and ",
                         sorted[j]->ToString(), " overlap"));
      }
    }
  }
  if (element_count == full.element_count()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "its ", slices.size(), " slices hold ", element_count, " of the ",
      full.element_count(), " elements of its shape ", full.ToString()));
}

proto::BundleSlice EncodeSlice(const TensorSlice& slice, const Shape& full) {
  proto::BundleSlice encoded;
  for (int axis = 0; axis < full.rank(); ++axis) {
    proto::BundleSlice::Extent* const extent = encoded.add_extent();
    if (slice.shape.dim(axis) == full.dim(axis)) continue;
    extent->set_start(slice.starts[axis]);
    extent->set_length(slice.shape.dim(axis));
  }
  return encoded;
}

absl::StatusOr<TensorSlice> DecodeSlice(const proto::BundleSlice& encoded,
                                        const Shape& full) {
  if (encoded.extent_size() != full.rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a slice of rank ", encoded.extent_size(),
                     " does not fit shape ", full.ToString()));
  }
  TensorSlice slice = TensorSlice::Whole(full);
  for (int axis = 0; axis < full.rank(); ++axis) {
    const proto::BundleSlice::Extent& extent = encoded.extent(axis);
    slice.starts[axis] = extent.start();
    if (extent.has_length_case() == proto::BundleSlice::Extent::kLength) {
      slice.shape.set_dim(axis, extent.length());
    }
  }
  RETURN_IF_ERROR(CheckSlice(slice, full));
  return slice;
}

std::string SliceKey(absl::string_view name, const proto::BundleSlice& slice) {
  std::string key;
  AppendOrderedCount(0, &key);
  AppendOrderedString(name, &key);
  AppendOrderedCount(slice.extent_size(), &key);
  for (const proto::BundleSlice::Extent& extent : slice.extent()) {
    const bool has_length =
        extent.has_length_case() == proto::BundleSlice::Extent::kLength;
    AppendOrderedSigned(extent.start(), &key);
    AppendOrderedSigned(has_length ? extent.length() : -1, &key);
  }
  return key;
}

SliceRuns::SliceRuns(const TensorSlice& source, const TensorSlice& target) {
  const std::optional<TensorSlice> both = Intersect(source, target);
  if (!both.has_value()) {
    is_done_ = true;
    return;
  }
  run_.count = 1;
  int64_t source_stride = 1;
  int64_t target_stride = 1;
  bool is_contiguous = true;
  for (int axis = both->shape.rank() - 1; axis >= 0; --axis) {
    const int64_t extent = both->shape.dim(axis);
    run_.source += (both->starts[axis] - source.starts[axis]) * source_stride;
    run_.target += (both->starts[axis] - target.starts[axis]) * target_stride;
    if (is_contiguous) {
      run_.count *= extent;
      is_contiguous =
          extent == source.shape.dim(axis) && extent == target.shape.dim(axis);
    } else {
      axes_.insert(axes_.begin(), {.extent = extent,
                                   .source_stride = source_stride,
                                   .target_stride = target_stride});
    }
    source_stride *= source.shape.dim(axis);
    target_stride *= target.shape.dim(axis);
  }
}

bool SliceRuns::Next(Run* run) {
  if (is_done_) return false;
  *run = run_;
  is_done_ = true;
  for (int axis = static_cast<int>(axes_.size()) - 1; axis >= 0; --axis) {
    Axis& at = axes_[axis];
    run_.source += at.source_stride;
    run_.target += at.target_stride;
    if (++at.index < at.extent) {
      is_done_ = false;
      break;
    }
    run_.source -= at.extent * at.source_stride;
    run_.target -= at.extent * at.target_stride;
    at.index = 0;
  }
  return true;
}

}  // namespace muster
