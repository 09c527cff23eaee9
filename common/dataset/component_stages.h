#ifndef COMMON_DATASET_COMPONENT_STAGES_H_
#define COMMON_DATASET_COMPONENT_STAGES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/dataset/dataset_node.h"

namespace muster {

// The stage that names, selects, orders and drops components. Elements pass it
// without copies of their values, and rows of tables stay rows.

// `indices` of the input's components, each at most once, in this order.
// `names`: none, or one for each of them; "" for none.
//   kInvalidArgument  an index is out of range or given twice, there are none,
//                     the names are not as many, or two are equal
absl::StatusOr<NodePointer> MakeComponents(NodePointer input,
                                           std::vector<int> indices,
                                           std::vector<std::string> names);

// As the methods of Dataset. Errors begin with the method's name.
absl::StatusOr<NodePointer> MakeWithNames(NodePointer input,
                                          std::vector<std::string> names);
absl::StatusOr<NodePointer> MakeRename(
    NodePointer input,
    absl::Span<const std::pair<std::string, std::string>> names);
absl::StatusOr<NodePointer> MakeSelect(NodePointer input,
                                       absl::Span<const std::string> names);
absl::StatusOr<NodePointer> MakeDrop(NodePointer input,
                                     absl::Span<const std::string> names);
absl::StatusOr<NodePointer> MakeSelectComponents(NodePointer input,
                                                 std::vector<int> indices);

}  // namespace muster

#endif  // COMMON_DATASET_COMPONENT_STAGES_H_
