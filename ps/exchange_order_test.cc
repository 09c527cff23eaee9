#include "ps/exchange_order.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/thread_pool.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/net/rpc/message.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/optimizer.pb.h"
#include "proto/parameter_server.pb.h"
#include "ps/frozen_rows.h"
#include "ps/shard_exchange.h"
#include "ps/shard_rules.h"
#include "ps/shard_variable.h"

namespace muster {
namespace {

constexpr uint32_t kDense = 0;
constexpr uint32_t kTable = 1;
// Several stripes each.
constexpr int64_t kRows = 3000;
constexpr int64_t kColumns = 64;

// The updates of one exchange.
struct Push {
  proto::ExchangeRequest request;
  std::vector<ReceivedTensor> tensors;
  int64_t number = 0;  // Its place in the order of the first server.
};

// The variables of a server.
class OneServer {
 public:
  OneServer(const std::string& optimizer, int thread_count)
      : pool_("exchange", thread_count) {
    for (const char* const name : {"dense", "table"}) {
      proto::ShardSpec spec;
      spec.set_shard_name(name);
      spec.mutable_variable()->set_name(name);
      spec.set_row_end(kRows);
      const auto handle = static_cast<uint32_t>(variables_.size());
      variables_.push_back(std::make_shared<ShardVariable>(
          spec, handle,
          Tensor::Full(DType::kFloat32, Shape({kRows, kColumns}), 0.5)));
      rules_.Add(handle, name, variables_.back()->type(), /*is_whole=*/true);
    }
    proto::Optimizer rule;
    EXPECT_TRUE(
        google::protobuf::TextFormat::ParseFromString(optimizer, &rule));
    EXPECT_OK(rules_.Set(UpdateRule::Create(rule).value(), {},
                         /*is_default=*/true));
  }

  void Apply(Push* push) {
    ShardExchange exchange({.variables = variables_,
                            .rules = &rules_,
                            .order = &order_,
                            .answer_bytes_max = 64,
                            .pool = &pool_},
                           push->request, {});
    ASSERT_OK(exchange.Check(push->tensors));
    push->number = exchange.ApplyUpdates().value();
  }

  // Returns the bytes of all values and slots.
  std::vector<std::vector<uint8_t>> Contents() {
    std::vector<std::vector<uint8_t>> contents;
    for (const auto& variable : variables_) {
      const auto frozen =
          variable->Freeze(std::make_shared<AsideBudget>(size_t{1} << 30));
      for (int array = 0; array < frozen.rows->array_count(); ++array) {
        std::vector<uint8_t>& bytes = contents.emplace_back();
        EXPECT_OK(variable->ReadFrozen(
            frozen, array, [&](absl::Span<const uint8_t> piece) {
              bytes.insert(bytes.end(), piece.begin(), piece.end());
              return absl::OkStatus();
            }));
      }
    }
    return contents;
  }

 private:
  ShardRules rules_{/*memory_bytes_max=*/0};
  std::vector<std::shared_ptr<ShardVariable>> variables_;
  ExchangeOrder order_;
  ThreadPool pool_;
};

Tensor RandomRows(int64_t count, RandomStream* random) {
  Tensor rows(DType::kFloat32, Shape({count, kColumns}));
  for (float& value : rows.mutable_flat<float>()) {
    value = static_cast<float>(random->Below(2001)) / 1000 - 1;
  }
  return rows;
}

void Add(uint32_t handle, proto::UpdateKind kind, const Tensor& value,
         Push* push) {
  push->request.add_update_handles(handle);
  push->request.add_update_kinds(kind);
  push->tensors.push_back(ReceivedTensor::FromTensor(value));
}

void AddSparse(proto::UpdateKind kind, int64_t row_count, RandomStream* random,
               Push* push) {
  Tensor rows(DType::kInt64, Shape({row_count}));
  for (int64_t& row : rows.mutable_flat<int64_t>()) {
    row = static_cast<int64_t>(random->Below(kRows));
  }
  push->tensors.push_back(ReceivedTensor::FromTensor(rows));
  Add(kTable, kind, RandomRows(row_count, random), push);
}

// A push like that of a step, with updates whose order matters.
Push MakePush(const std::vector<Tensor>& dense, RandomStream* random) {
  Push push;
  const uint64_t choice = random->Below(4);
  if (choice == 0) {
    Add(kDense, proto::ASSIGN_ADD, dense[random->Below(dense.size())], &push);
  }
  if (choice != 1) {
    Add(kDense, proto::APPLY_GRADIENT, dense[random->Below(dense.size())],
        &push);
  }
  AddSparse(proto::APPLY_SPARSE_GRADIENT, 30, random, &push);
  if (choice == 2) AddSparse(proto::SCATTER_UPDATE, 5, random, &push);
  return push;
}

// Applies the pushes of several workers at the same time on one server, and
// then one after another on a second server.
void ExpectEqualServers(const std::string& optimizer, int thread_count) {
  constexpr int kWorkers = 4;
  constexpr int kPushes = 6;  // Of each worker.
  std::vector<Push> pushes;
  RandomStream random(FoldIn(7, "pushes"));
  std::vector<Tensor> dense;
  for (int i = 0; i < 4; ++i) dense.push_back(RandomRows(kRows, &random));
  for (int i = 0; i < kWorkers * kPushes; ++i) {
    pushes.push_back(MakePush(dense, &random));
  }
  OneServer server(optimizer, thread_count);
  std::vector<std::thread> workers;
  for (int worker = 0; worker < kWorkers; ++worker) {
    workers.emplace_back([&, worker] {
      for (int i = 0; i < kPushes; ++i) {
        server.Apply(&pushes[worker * kPushes + i]);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();

  std::sort(pushes.begin(), pushes.end(),
            [](const Push& a, const Push& b) { return a.number < b.number; });
  OneServer copy(optimizer, /*thread_count=*/0);
  for (size_t i = 0; i < pushes.size(); ++i) {
    EXPECT_EQ(pushes[i].number, i + 1);
    copy.Apply(&pushes[i]);
  }
  const auto contents = server.Contents();
  const auto copied = copy.Contents();
  ASSERT_EQ(contents.size(), copied.size());
  for (size_t i = 0; i < contents.size(); ++i) {
    EXPECT_TRUE(contents[i] == copied[i]) << "array " << i;
  }
}

class ExchangeOrderTest : public testing::TestWithParam<const char*> {};

// Stripes are updated on the threads of the callers, and on those of a pool.
TEST_P(ExchangeOrderTest, EqualOrdersGiveEqualBits) {
  for (const int thread_count : {0, 3}) {
    for (int i = 0; i < 3; ++i) ExpectEqualServers(GetParam(), thread_count);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Optimizers, ExchangeOrderTest,
    testing::Values(
        "adam { learning_rate: 0.1 }",
        "sgd { learning_rate: 0.1 momentum: 0.9 }",
        "sgd { learning_rate: 0.1 } use_ema: true ema_momentum: 0.9",
        "adam { learning_rate: 0.1 } gradient_accumulation_steps: 3",
        // An update needs the whole variable.
        "lamb { learning_rate: 0.1 }",
        // A slot begins as a copy of the variable.
        "schedule_free_adamw { learning_rate: 0.1 }"));

}  // namespace
}  // namespace muster
