#ifndef PS_TESTING_SHARD_CALL_H_
#define PS_TESTING_SHARD_CALL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/net/rpc/message.h"
#include "gtest/gtest.h"
#include "proto/optimizer.pb.h"
#include "proto/parameter_server.pb.h"
#include "ps/parameter_shard.h"

namespace muster {

// Returns the spec of the only shard of a variable.
proto::ShardSpec Spec(const std::string& name, DType dtype, const Shape& shape,
                      double value = 0);

proto::Optimizer SgdOf(double learning_rate);

// Builds an exchange as a client does.
struct Call {
  proto::ExchangeRequest request;
  std::vector<ReceivedTensor> tensors;
  proto::ExchangeResponse response;
  std::vector<Tensor> answers;
  std::vector<AnswerPlace> places;

  Call& Step(uint64_t step_id, uint32_t exchange_index = 0) {
    request.set_step_id(step_id);
    request.set_exchange_index(exchange_index);
    return *this;
  }
  Call& Update(uint32_t handle, proto::UpdateKind kind, const Tensor& value) {
    request.add_update_handles(handle);
    request.add_update_kinds(kind);
    tensors.push_back(ReceivedTensor::FromTensor(value));
    return *this;
  }
  Call& Sparse(uint32_t handle, proto::UpdateKind kind,
               std::vector<int64_t> rows, const Tensor& value) {
    AddRows(std::move(rows));
    return Update(handle, kind, value);
  }
  Call& Gather(uint32_t handle, std::vector<int64_t> rows) {
    request.add_gather_handles(handle);
    AddRows(std::move(rows));
    return *this;
  }
  Call& Pull(uint32_t handle, int64_t held_version = 0) {
    request.add_pull_handles(handle);
    request.add_pull_held_versions(held_version);
    return *this;
  }
  void AddRows(std::vector<int64_t> rows) {
    tensors.push_back(ReceivedTensor::FromTensor(Tensor::FromSpan<int64_t>(
        Shape({static_cast<int64_t>(rows.size())}), rows)));
  }
  // Sets the place of the next answer. Either all answers or none have a place.
  Call& At(void* data, size_t size_bytes) {
    places.push_back({static_cast<uint8_t*>(data), size_bytes});
    return *this;
  }
  absl::Status Run(ParameterShard& shard) {
    response.Clear();
    answers.clear();
    return shard.Exchange(request, tensors, &response, &answers, places);
  }
};

// Pulls a float32 variable.
std::vector<float> Values(ParameterShard& shard, uint32_t handle);

Tensor Floats(const Shape& shape, std::vector<float> values);

class ShardFixture : public testing::Test {
 protected:
  ShardFixture() : shard_({.thread_count = 2}) {}

  uint32_t Create(const std::string& name, const Shape& shape,
                  double value = 0) {
    return shard_.Create(Spec(name, DType::kFloat32, shape, value)).value();
  }

  ParameterShard shard_;
};

}  // namespace muster

#endif  // PS_TESTING_SHARD_CALL_H_
