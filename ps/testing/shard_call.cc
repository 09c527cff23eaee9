#include "ps/testing/shard_call.h"

#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor_codec.h"
#include "gmock/gmock.h"

namespace muster {

proto::ShardSpec Spec(const std::string& name, DType dtype, const Shape& shape,
                      double value) {
  proto::ShardSpec spec;
  spec.mutable_variable()->set_name(name);
  spec.mutable_variable()->set_dtype(EncodeDType(dtype));
  *spec.mutable_variable()->mutable_shape() = EncodeShape(shape);
  spec.mutable_variable()->set_trainable(true);
  spec.mutable_variable()->mutable_initializer()->mutable_constant()->set_value(
      value);
  spec.set_shard_name(name);
  spec.set_row_end(shape.rank() == 0 ? 1 : shape.dim(0));
  return spec;
}

proto::Optimizer SgdOf(double learning_rate) {
  proto::Optimizer optimizer;
  optimizer.mutable_sgd()->set_learning_rate(learning_rate);
  return optimizer;
}

std::vector<float> Values(ParameterShard& shard, uint32_t handle) {
  Call call;
  EXPECT_OK(call.Pull(handle).Run(shard));
  const auto flat = call.answers.at(0).flat<float>();
  return std::vector<float>(flat.begin(), flat.end());
}

Tensor Floats(const Shape& shape, std::vector<float> values) {
  return Tensor::FromSpan<float>(shape, values);
}

}  // namespace muster
