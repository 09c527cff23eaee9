#include "common/learn/nn/recurrent/carried_states.h"

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/learn/nn/weight.h"

namespace muster::internal {

std::string CarriedStateName(int index) {
  return index == 0 ? "rnn_state" : absl::StrCat("rnn_state_", index);
}

void Carry(absl::Span<const Value> last, const std::vector<Weight>& carried) {
  for (size_t i = 0; i < carried.size(); ++i) {
    if (!last[i].ok()) return;
    carried[i].Assign(Cast(last[i], carried[i].handle().type.dtype));
  }
}

}  // namespace muster::internal
