#ifndef COMMON_DATASET_GROUP_BY_WINDOW_H_
#define COMMON_DATASET_GROUP_BY_WINDOW_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"

namespace muster {

struct GroupByWindowOptions {
  // The key of an element.
  std::function<absl::StatusOr<int64_t>(const Element&)> key_of = {};
  // Makes a dataset of the elements of one window, which have the same key and
  // are in the order of the input. Its elements come in place of the window.
  std::function<Dataset(int64_t key, const Dataset& window)> reduce = {};
  // The most elements of a window: a number for all keys, or a function.
  int64_t window_size = 0;
  std::function<int64_t(int64_t key)> window_size_of = {};
};

// Collects the elements of each key into windows. A window is reduced when it
// is full; those that are not full come last, by ascending keys. Elements of
// windows that are not full are kept in memory.
//
//   GroupByWindow(sentences,
//                 {.key_of = LengthClass,
//                  .reduce = [](int64_t, const Dataset& window) {
//                    return window.PaddedBatch(32);
//                  },
//                  .window_size = 32},
//                 {{DType::kInt64, Shape({Shape::kUnknown, Shape::kUnknown})}})
//
// `output_types` are those of the elements of what `reduce` makes, which all
// have the same names; WithNames() gives those of the result. A dataset
// with such functions cannot be sent to other processes;
// BucketBySequenceLength() can.
//
// Errors that status() has:
//   kInvalidArgument  a function is missing, or there are both or neither of
//                     window_size and window_size_of, or it is below 1
// Errors of iterators:
//   kInvalidArgument  window_size_of() is below 1, or reduce() made a dataset
//                     of other types, or of other names than before
//   others            of the input and the functions
//
// Equivalent to: tf.data.Dataset.group_by_window.
Dataset GroupByWindow(const Dataset& input, GroupByWindowOptions options,
                      std::vector<TensorType> output_types);

}  // namespace muster

#endif  // COMMON_DATASET_GROUP_BY_WINDOW_H_
