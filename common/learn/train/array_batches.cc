#include "common/learn/train/array_batches.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/train/epoch_plan.h"

namespace muster {
namespace {

// Keras' default.
constexpr int64_t kBatchSize = 32;

absl::StatusOr<int64_t> ExampleCountOf(absl::string_view call,
                                       const Element& arrays) {
  if (arrays.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(call, ": there are no arrays; expected x, y and so on"));
  }
  for (size_t i = 0; i < arrays.size(); ++i) {
    const bool has_rows = arrays[i].IsValid() && arrays[i].shape().rank() > 0;
    if (!has_rows) {
      return absl::InvalidArgumentError(absl::StrCat(
          call, ": array ", i, " is ",
          arrays[i].IsValid() ? arrays[i].type().ToString() : "no tensor",
          "; expected examples along a first axis"));
    }
    if (arrays[i].shape().dim(0) != arrays[0].shape().dim(0)) {
      return absl::InvalidArgumentError(absl::StrCat(
          call, ": array ", i, " is ", arrays[i].type().ToString(),
          " and array 0 is ", arrays[0].type().ToString(),
          "; expected as many examples, along the first axis, in all"));
    }
  }
  const int64_t count = arrays[0].shape().dim(0);
  if (count > 0) return count;
  return absl::InvalidArgumentError(
      absl::StrCat(call, ": the arrays have no examples"));
}

absl::StatusOr<int64_t> BatchSizeFor(absl::string_view call,
                                     int64_t example_count,
                                     std::optional<int64_t> batch_size,
                                     std::optional<int64_t> steps) {
  if (batch_size.has_value()) {
    if (*batch_size >= 1) return *batch_size;
    return absl::InvalidArgumentError(absl::StrCat(
        call, ": batch_size must be at least 1, got ", *batch_size));
  }
  // An invalid number of steps is rejected elsewhere.
  if (!steps.has_value() || *steps < 1) return kBatchSize;
  return (example_count - 1) / *steps + 1;
}

Element Rows(const Element& arrays, int64_t begin, int64_t end) {
  Element rows;
  for (const Tensor& array : arrays) {
    rows.push_back(array.SliceRows(begin, end));
  }
  return rows;
}

}  // namespace

absl::StatusOr<Dataset> BatchArrays(absl::string_view call,
                                    const Element& arrays,
                                    std::optional<int64_t> batch_size,
                                    std::optional<int64_t> steps) {
  ASSIGN_OR_RETURN(const int64_t example_count, ExampleCountOf(call, arrays));
  ASSIGN_OR_RETURN(const int64_t size,
                   BatchSizeFor(call, example_count, batch_size, steps));
  Dataset batches = Dataset::FromTensorSlices(arrays).Batch(size);
  RETURN_IF_ERROR(batches.status());
  return batches;
}

absl::StatusOr<FitCall> FitCallOfArrays(const Element& arrays,
                                        const FitOptions& options,
                                        uint64_t shuffle_seed) {
  ASSIGN_OR_RETURN(int64_t example_count, ExampleCountOf("Fit", arrays));
  FitCall call{.options = options};
  Element train = arrays;
  if (options.validation_split != 0) {
    if (options.validation_data.has_value()) {
      return absl::InvalidArgumentError(
          "Fit: got both validation_split and validation_data; expected one "
          "of them");
    }
    ASSIGN_OR_RETURN(
        const int64_t train_count,
        TrainingExampleCount(example_count, options.validation_split));
    train = Rows(arrays, 0, train_count);
    call.options.validation_data = Rows(arrays, train_count, example_count);
    example_count = train_count;
  }
  ASSIGN_OR_RETURN(const int64_t batch_size,
                   BatchSizeFor("Fit", example_count, options.batch_size,
                                options.steps_per_epoch));
  call.data = Dataset::FromTensorSlices(std::move(train));
  if (options.shuffle.value_or(true)) {
    // Workers that each read all examples read them in different orders.
    call.data = call.data.Shuffle(example_count,
                                  {.seed = shuffle_seed, .decorrelate = true});
  }
  call.data = call.data.Batch(batch_size);
  RETURN_IF_ERROR(call.data.status());
  const bool validates_arrays =
      call.options.validation_data.has_value() &&
      std::holds_alternative<Element>(*call.options.validation_data);
  if (validates_arrays && !options.validation_batch_size.has_value()) {
    call.options.validation_batch_size = options.batch_size;
  }
  call.options.batch_size = std::nullopt;
  call.options.shuffle = std::nullopt;
  call.options.validation_split = 0;
  return call;
}

absl::Status OptionForArraysError(absl::string_view call,
                                  absl::string_view option,
                                  absl::string_view instead) {
  return absl::InvalidArgumentError(absl::StrCat(
      call, ": ", option, " is for arrays only, but the data is a Dataset; ",
      instead));
}

absl::StatusOr<FitOptions> OptionsOfBatches(const FitOptions& options) {
  if (options.batch_size.has_value()) {
    return OptionForArraysError("Fit", "batch_size", "batch it with Batch()");
  }
  if (options.shuffle.has_value()) {
    return OptionForArraysError("Fit", "shuffle", "shuffle it with Shuffle()");
  }
  if (options.validation_split != 0) {
    return OptionForArraysError("Fit", "validation_split",
                                "divide it with Take() and Skip()");
  }
  FitOptions batched = options;
  batched.validation_batch_size = std::nullopt;
  const Element* const arrays =
      options.validation_data.has_value()
          ? std::get_if<Element>(&*options.validation_data)
          : nullptr;
  if (arrays != nullptr) {
    ASSIGN_OR_RETURN(
        batched.validation_data,
        BatchArrays("Fit: validation_data", *arrays,
                    options.validation_batch_size, options.validation_steps));
  } else if (options.validation_batch_size.has_value()) {
    return absl::InvalidArgumentError(
        "Fit: validation_batch_size is for validation_data that are arrays; "
        "batch a Dataset with Batch()");
  }
  return batched;
}

}  // namespace muster
