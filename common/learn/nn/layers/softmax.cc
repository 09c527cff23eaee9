#include "common/learn/nn/layers/softmax.h"

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/masks.h"

namespace muster {

void SoftmaxLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("axis", axis_);
}

Value SoftmaxLayer::Call(Value x, const CallContext& context) {
  const int rank = x.shape().rank();
  bool is_valid = !axis_.empty();
  for (const int64_t axis : axis_) {
    is_valid = is_valid && axis < rank && axis >= -rank && (axis + rank) % rank;
  }
  const Value mask = context.masks->Find(x);
  if (!is_valid || (mask.ok() && mask.shape().rank() != rank)) {
    x.builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
        "Softmax ", name(), ": expected axes of the input other than the ",
        "batch's, and no mask or one of the input's rank; axis is {",
        absl::StrJoin(axis_, ", "), "}, the input is ", x.type().ToString(),
        mask.ok() ? absl::StrCat(", its mask ", mask.type().ToString()) : "")));
    return Value();
  }
  const Value zeros = ZerosLike(x);
  // What Keras puts in place of what is masked. 1e9 is infinite in float16.
  const double masked = x.dtype() == DType::kFloat16 ? -3e4 : -1e9;
  if (mask.ok()) x = Select(mask, x, zeros + masked);
  const Value greatest = StopGradient(Max(x, axis_, {.keep_dims = true}));
  const Value powers = Exp(x - greatest);
  const Value y = powers / Sum(powers, axis_, {.keep_dims = true});
  return mask.ok() ? Select(mask, y, zeros) : y;
}

LayerPtr Softmax(const SoftmaxOptions& options) {
  return std::make_shared<SoftmaxLayer>(options);
}

}  // namespace muster
