// The versions of values, by which a server decides not to send them again.
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/net/rpc/message.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/parameter_server.pb.h"
#include "proto/tensor.pb.h"
#include "proto/variable.pb.h"
#include "ps/parameter_shard.h"
#include "ps/shard_variable.h"

namespace muster {
namespace {

constexpr int kUpdates = 5;

// A process of a server, with the variable "x" under handle 0.
class Process {
 public:
  explicit Process(uint64_t generation) : generation_(generation) {
    EXPECT_OK(shard_.RollBack(generation, /*low_water_mark=*/0));
    proto::ShardSpec spec;
    spec.set_shard_name("x");
    spec.set_row_end(1);
    spec.mutable_variable()->set_name("x");
    spec.mutable_variable()->set_dtype(proto::DT_FLOAT);
    EXPECT_OK(shard_.Create(spec));
  }

  // Adds `value` to x and pulls it, with the version that the caller holds.
  // Returns the new version, and whether the value was sent.
  struct Answer {
    int64_t version = 0;
    bool has_value = false;
  };
  Answer Exchange(float value, int64_t held_version) {
    proto::ExchangeRequest request;
    request.set_generation(generation_);
    std::vector<ReceivedTensor> tensors;
    if (value != 0) {
      request.add_update_handles(0);
      request.add_update_kinds(proto::ASSIGN_ADD);
      tensors.push_back(
          ReceivedTensor::FromTensor(Tensor::Scalar<float>(value)));
    }
    request.add_pull_handles(0);
    request.add_pull_held_versions(held_version);
    proto::ExchangeResponse response;
    std::vector<Tensor> answers;
    EXPECT_OK(shard_.Exchange(request, tensors, &response, &answers));
    return {response.pull_versions(0), !answers.empty()};
  }

 private:
  const uint64_t generation_;
  ParameterShard shard_{{.thread_count = 1}};
};

// A worker may still hold the value of the process that was lost. Both
// processes have made the same number of updates, and others.
TEST(ShardVersionTest, AVersionOfAFormerProcessIsNeverHeld) {
  Process former(/*generation=*/3);
  std::vector<int64_t> held = {former.Exchange(0, 0).version};
  for (int i = 0; i < kUpdates; ++i) {
    held.push_back(former.Exchange(1, 0).version);
  }
  Process replacement(/*generation=*/4);
  for (int i = 0; i <= kUpdates; ++i) {
    const int64_t version = replacement.Exchange(i == 0 ? 0 : 2, 0).version;
    for (const int64_t old_version : held) {
      EXPECT_TRUE(replacement.Exchange(0, old_version).has_value);
      // A client keeps the value with the higher version.
      EXPECT_GT(version, old_version);
    }
    EXPECT_FALSE(replacement.Exchange(0, version).has_value);
  }
}

TEST(ShardVersionTest, GenerationsHaveALimit) {
  ParameterShard shard({.thread_count = 1});
  EXPECT_THAT(shard.RollBack(ShardVariable::kGenerationMax + 1, 0),
              StatusIs(absl::StatusCode::kInvalidArgument));
  ASSERT_OK(shard.RollBack(ShardVariable::kGenerationMax, 0));
  Process last(ShardVariable::kGenerationMax);
  EXPECT_GT(last.Exchange(1, 0).version, 0);
}

}  // namespace
}  // namespace muster
