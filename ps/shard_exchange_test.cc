#include "ps/shard_exchange.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/thread_pool.h"
#include "common/core/tensor/tensor.h"
#include "common/net/rpc/message.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/parameter_server.pb.h"
#include "ps/exchange_order.h"
#include "ps/shard_rules.h"
#include "ps/shard_variable.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The variables of a server: handle 0 is [1, 2, 3]; handle 1 is not in use.
class ShardExchangeTest : public testing::Test {
 protected:
  ShardExchangeTest() : rules_(/*memory_bytes_max=*/0) {
    proto::ShardSpec spec;
    spec.set_shard_name("x");
    spec.set_row_end(3);
    variables_ = {std::make_shared<ShardVariable>(
                      spec, 0, Tensor::FromValues<float>({3}, {1, 2, 3})),
                  nullptr};
    rules_.Add(0, "x", variables_[0]->type(), /*is_whole=*/true);
  }

  ShardExchange Exchange(absl::Span<const AnswerPlace> places = {}) {
    return ShardExchange({.variables = variables_,
                          .rules = &rules_,
                          .order = &order_,
                          .answer_bytes_max = 64,
                          .pool = &pool_},
                         request_, places);
  }

  void AddUpdate(uint32_t handle, const Tensor& value) {
    request_.add_update_handles(handle);
    request_.add_update_kinds(proto::ASSIGN_ADD);
    tensors_.push_back(ReceivedTensor::FromTensor(value));
  }
  void AddPull(uint32_t handle) {
    request_.add_pull_handles(handle);
    request_.add_pull_held_versions(0);
  }

  std::vector<float> Values() const {
    std::vector<float> values(3);
    variables_[0]->CopyStripe(0, reinterpret_cast<uint8_t*>(values.data()));
    return values;
  }

  ExchangeOrder order_;
  ThreadPool pool_{"exchange", 0};
  ShardRules rules_;
  std::vector<std::shared_ptr<ShardVariable>> variables_;
  proto::ExchangeRequest request_;
  std::vector<ReceivedTensor> tensors_;
  proto::ExchangeResponse response_;
  std::vector<Tensor> answers_;
};

const Tensor& Ones() {
  static const auto* const ones =
      new Tensor(Tensor::FromValues<float>({3}, {1, 1, 1}));
  return *ones;
}

TEST_F(ShardExchangeTest, AnswersWithWhatTheUpdatesMade) {
  AddUpdate(0, Ones());
  AddUpdate(0, Ones());
  AddPull(0);
  ShardExchange exchange = Exchange();
  ASSERT_OK(exchange.Check(tensors_));
  ASSERT_OK(exchange.ApplyUpdates().status());
  EXPECT_EQ(exchange.Answer(&response_, &answers_), 3 * sizeof(float));
  ASSERT_EQ(answers_.size(), 1);
  EXPECT_THAT(answers_[0].flat<float>(), ElementsAre(3, 4, 5));
  EXPECT_THAT(response_.pull_versions(), ElementsAre(3));
}

TEST_F(ShardExchangeTest, AnswersARepetitionWithoutUpdates) {
  AddUpdate(0, Ones());
  AddPull(0);
  ShardExchange exchange = Exchange();
  ASSERT_OK(exchange.Check(tensors_));
  exchange.Answer(&response_, &answers_);
  EXPECT_THAT(answers_[0].flat<float>(), ElementsAre(1, 2, 3));
}

TEST_F(ShardExchangeTest, WritesAnswersToTheirPlaces) {
  AddUpdate(0, Ones());
  AddPull(0);
  std::vector<float> place(3);
  const AnswerPlace places[] = {
      {reinterpret_cast<uint8_t*>(place.data()), 3 * sizeof(float)}};
  ShardExchange exchange = Exchange(places);
  ASSERT_OK(exchange.Check(tensors_));
  ASSERT_OK(exchange.ApplyUpdates().status());
  EXPECT_EQ(exchange.Answer(&response_, &answers_), 3 * sizeof(float));
  EXPECT_THAT(place, ElementsAre(2, 3, 4));
  EXPECT_THAT(answers_, testing::IsEmpty());
}

TEST_F(ShardExchangeTest, ChangesNothingIfAPartIsInvalid) {
  AddUpdate(0, Ones());
  AddUpdate(1, Ones());
  EXPECT_THAT(Exchange().Check(tensors_),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("handle 1")));
  EXPECT_THAT(Values(), ElementsAre(1, 2, 3));
}

TEST_F(ShardExchangeTest, RejectsOtherCountsOfTensorsThanItNeeds) {
  AddUpdate(0, Ones());
  EXPECT_THAT(Exchange().Check({}), StatusIs(absl::StatusCode::kInvalidArgument,
                                             HasSubstr("too few tensors")));
  tensors_.push_back(tensors_[0]);
  EXPECT_THAT(
      Exchange().Check(tensors_),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("too many")));
}

TEST_F(ShardExchangeTest, RejectsAnswersThatAreTooLarge) {
  for (int i = 0; i < 6; ++i) AddPull(0);
  EXPECT_THAT(Exchange().Check({}),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("more than 64 bytes with variable \"x\"")));
}

}  // namespace
}  // namespace muster
