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

// Arrays, in Keras' terms: an Element with all examples in memory. Its
// components x, y and sample weights are stacked along the first axis. The
// functions below convert arrays to batches and apply the options for arrays,
// so that training, evaluation and prediction handle only Datasets. Memory is
// shared, not copied.

// Returns batches of `arrays`, in order, of `batch_size` examples. If it is
// unset, the size is chosen to give `steps` batches; if both are unset, it is
// 32. Errors begin with `call`, such as "Fit".
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

// Converts a Fit() of arrays to a Fit() of batches: splits off validation data,
// shuffles in each epoch, as `shuffle_seed` determines, and batches. Validation
// data may still be arrays.
//   kInvalidArgument  as for BatchArrays(); or validation_split is out of
//                     range, leaves one side without examples, or is given
//                     together with validation_data
absl::StatusOr<FitCall> FitCallOfArrays(const Element& arrays,
                                        const FitOptions& options,
                                        uint64_t shuffle_seed);

// Returns the error that `option`, such as "batch_size", was given with a
// Dataset. `instead` says what to do instead.
absl::Status OptionForArraysError(absl::string_view call,
                                  absl::string_view option,
                                  absl::string_view instead);

// Returns the options of a Fit() of batches, with validation data converted to
// batches.
//   kInvalidArgument  an option is for arrays only; names it. Or as for
//                     BatchArrays(), for validation data
absl::StatusOr<FitOptions> OptionsOfBatches(const FitOptions& options);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_ARRAY_BATCHES_H_
