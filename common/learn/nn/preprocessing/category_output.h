#ifndef COMMON_LEARN_NN_PREPROCESSING_CATEGORY_OUTPUT_H_
#define COMMON_LEARN_NN_PREPROCESSING_CATEGORY_OUTPUT_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"

namespace muster {

// The output of a layer for the index of a category. The values are positions
// in kCategoryOutputNames.
enum class CategoryOutput {
  kInt,       // The index.
  kOneHot,    // A vector with a 1 at the index.
  kMultiHot,  // A vector for each example, with a 1 at each of its indices.
  kCount,     // The same, with how often each index occurs.
  kTfIdf,     // The same, times a weight of each index.
};
inline constexpr absl::string_view kCategoryOutputNames[] = {
    "int", "one_hot", "multi_hot", "count", "tf_idf"};

// Returns float32 vectors of `depth` for indices, which are int32 or int64:
//   kOneHot    [...] -> [..., depth]; a last axis of extent 1 is left out
//   kMultiHot  [batch, n, ...] -> [batch, ..., depth]
//   kCount     the same
// An index outside of [0, depth) adds nothing. Reports kInvalidArgument for
// indices without an axis to count along, and for other outputs.
//
// Equivalent to: the encoding in Keras' layers of categories.
Value EncodeCategories(Value indices, CategoryOutput output, int64_t depth);

}  // namespace muster

#endif  // COMMON_LEARN_NN_PREPROCESSING_CATEGORY_OUTPUT_H_
