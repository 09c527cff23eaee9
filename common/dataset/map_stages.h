#ifndef COMMON_DATASET_MAP_STAGES_H_
#define COMMON_DATASET_MAP_STAGES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/dataset/corrupt_input.h"
#include "common/dataset/dataset.h"
#include "common/dataset/dataset_node.h"
#include "common/dataset/element_function.h"

namespace muster {

// Map() and Filter().
//   kInvalidArgument  an option is out of range, or a predicate does not return
//                     a single bool

inline constexpr int kMapThreadCountMax = 64;

// With kSkip, elements for which the function returns an error that satisfies
// IsCorruptInput() are skipped.
absl::StatusOr<NodePointer> MakeMap(
    NodePointer input, std::shared_ptr<const ElementFunctionFactory> function,
    const MapOptions& options,
    CorruptInput corrupt_input = CorruptInput::kFail);

absl::StatusOr<NodePointer> MakeFilter(
    NodePointer input, std::shared_ptr<const ElementFunctionFactory> predicate);
absl::StatusOr<NodePointer> MakeFilter(NodePointer input,
                                       Dataset::ElementPredicate predicate);

}  // namespace muster

#endif  // COMMON_DATASET_MAP_STAGES_H_
