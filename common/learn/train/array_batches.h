#ifndef COMMON_LEARN_TRAIN_ARRAY_BATCHES_H_
#define COMMON_LEARN_TRAIN_ARRAY_BATCHES_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/dataset/dataset.h"
#include "common/learn/train/base/fit_options.h"

namespace muster {

// Arrays, as Keras calls them: an Element that has all examples in memory, its
// components x, y and sample weights stacked along the first axis. Before
// anything is done with them they are made batches, and the options that speak
// of arrays are used up: training, evaluation and prediction know Datasets
// alone. Memory is shared, not copied.

// The batches of `arrays` in their order, of `batch_size` examples; when unset,
// so many that they are `steps` batches, and 32 without both. `call` begins
// errors: "Fit".
//   kInvalidArgument  there are no examples, components have different numbers
//                     of them, or batch_size is out of range
absl::StatusOr<Dataset> BatchArrays(absl::string_view call,
                                    const Element& arrays,
                                    std::optional<int64_t> batch_size,
                                    std::optional<int64_t> steps);

// The arguments of Fit().
struct FitCall {
  Dataset data;
  FitOptions options;
};

// Fit() of arrays as Fit() of batches: split, shuffled again in each epoch as
// `shuffle_seed` says, batched. Validation data may still be arrays.
//   kInvalidArgument  as BatchArrays(); validation_split is out of range or
//                     leaves one side without examples, or there is
//                     validation_data besides
absl::StatusOr<FitCall> FitCallOfArrays(const Element& arrays,
                                        const FitOptions& options,
                                        uint64_t shuffle_seed);

// That `option`, "batch_size", came with a Dataset, and what to do `instead`.
absl::Status OptionForArraysError(absl::string_view call,
                                  absl::string_view option,
                                  absl::string_view instead);

// The options of Fit() of batches, with validation data that are batches.
//   kInvalidArgument  an option is for arrays, which there are none of; names
//                     it. As BatchArrays() for those that validate
absl::StatusOr<FitOptions> OptionsOfBatches(const FitOptions& options);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_ARRAY_BATCHES_H_
