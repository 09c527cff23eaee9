#include <sys/resource.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/config.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/core/tensor/tensor_codec.h"
#include "common/net/rpc/message.h"
#include "common/net/rpc/service.h"
#include "gtest/gtest.h"
#include "proto/parameter_server.pb.h"
#include "proto/rpc.pb.h"
#include "proto/tensor.pb.h"
#include "ps/client/methods.h"
#include "ps/parameter_service.h"
#include "ps/testing/test_share.h"

namespace muster {
namespace {

constexpr uint64_t kIncarnation = 9;

// Limit on the memory that thousands of requests may add to the process.
#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
// Sanitizers quarantine freed memory.
constexpr size_t kMemoryGrowthBytesMax = size_t{1} << 30;
#else
constexpr size_t kMemoryGrowthBytesMax = 64 << 20;
#endif

size_t PeakMemoryBytes() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<size_t>(usage.ru_maxrss) << 10;
}

// A service without a network. Messages are serialized and parsed.
class ParameterServiceFuzzTest : public testing::Test {
 protected:
  ParameterServiceFuzzTest()
      : service_({"ps", 0, kIncarnation}, {.memory_bytes_max = 1 << 20,
                                           .answer_bytes_max = 1 << 20,
                                           .variable_count_max = 8,
                                           .remembered_push_count_max = 1000}) {
    for (int i = 0; i < 3; ++i) {
      proto::ShardSpec spec;
      spec.set_shard_name("v" + std::to_string(i));
      spec.mutable_variable()->set_name(spec.shard_name());
      spec.mutable_variable()->set_dtype(
          EncodeDType(i == 2 ? DType::kInt64 : DType::kFloat32));
      *spec.mutable_variable()->mutable_shape() = EncodeShape(Shape({4, 2}));
      spec.set_row_end(4);
      EXPECT_OK(service_.shard().Create(spec));
    }
    proto::Optimizer optimizer;
    optimizer.mutable_sgd()->set_learning_rate(1);
    optimizer.mutable_sgd()->set_momentum(0.5);
    EXPECT_OK(service_.shard().SetOptimizer(optimizer));
  }

  // Fails unless the request gets exactly one answer.
  absl::StatusOr<Message> Call(absl::string_view method,
                               std::vector<MessageSlice> slices) {
    ASSIGN_OR_RETURN(ReceivedMessage message,
                     ReceivedMessage::Parse(std::move(slices)));
    RETURN_IF_ERROR(service_.admission_check().Check(message.identity()));
    absl::StatusOr<Message> answer = absl::InternalError("no answer");
    int answer_count = 0;
    (*service_.service().FindUnary(method))(
        std::move(message), Responder([&](absl::StatusOr<Message> response) {
          answer = std::move(response);
          ++answer_count;
        }));
    EXPECT_EQ(answer_count, 1);
    return answer;
  }

  absl::StatusOr<Message> Exchange(const proto::ExchangeRequest& request,
                                   std::vector<Tensor> tensors) {
    return Call(kExchangeMethod,
                EncodeMessage(Identity(), {request.SerializeAsString(),
                                           std::move(tensors)}));
  }

  static proto::RequestIdentity Identity() {
    proto::RequestIdentity identity;
    identity.set_target_incarnation(kIncarnation);
    return identity;
  }

  // Expects the server to answer a valid request.
  void ExpectAlive() {
    proto::ExchangeRequest request;
    request.add_pull_handles(0);
    request.add_pull_held_versions(0);
    ASSERT_OK_AND_ASSIGN(const Message answer, Exchange(request, {}));
    EXPECT_EQ(answer.tensors.size(), 1);
  }

  ParameterService service_;
  RandomStream random_{77};
};

TEST_F(ParameterServiceFuzzTest, AnswersRequestsOfRandomParts) {
  const size_t memory_before = PeakMemoryBytes();
  const auto number = [&]() -> int64_t {
    const int64_t extremes[] = {0,
                                1,
                                -1,
                                3,
                                4,
                                int64_t{1} << 40,
                                std::numeric_limits<int64_t>::max(),
                                std::numeric_limits<int64_t>::min()};
    return random_.Below(2) ? static_cast<int64_t>(random_.Below(5))
                            : extremes[random_.Below(8)];
  };
  int ok_count = 0;
  for (int round = 0; round < 30000; ++round) {
    proto::ExchangeRequest request;
    std::vector<Tensor> tensors;
    request.set_step_id(static_cast<uint64_t>(number()));
    request.set_exchange_index(static_cast<uint32_t>(number()));
    if (random_.Below(50) == 0) {
      request.set_low_water_mark(static_cast<uint64_t>(random_.Below(5)));
    }
    for (uint64_t i = random_.Below(3); i > 0; --i) {
      request.add_update_handles(static_cast<uint32_t>(random_.Below(4)));
      request.add_update_kinds(
          static_cast<proto::UpdateKind>(random_.Below(10)));
    }
    for (uint64_t i = random_.Below(3); i > 0; --i) {
      request.add_gather_handles(static_cast<uint32_t>(random_.Below(4)));
    }
    for (uint64_t i = random_.Below(3); i > 0; --i) {
      request.add_pull_handles(static_cast<uint32_t>(random_.Below(4)));
      if (random_.Below(10)) request.add_pull_held_versions(number());
    }
    for (uint64_t i = random_.Below(5); i > 0; --i) {
      switch (random_.Below(4)) {
        case 0:
          tensors.push_back(
              Tensor::FromValues<int64_t>({2}, {number(), number()}));
          break;
        case 1:
          tensors.push_back(Tensor::Zeros(DType::kFloat32, Shape({2, 2})));
          break;
        case 2:
          tensors.push_back(Tensor::Zeros(
              DType::kFloat32,
              Shape({4, static_cast<int64_t>(random_.Below(4))})));
          break;
        case 3:
          tensors.push_back(Tensor::Zeros(
              random_.Below(2) ? DType::kBool : DType::kInt64, Shape({4, 2})));
          break;
      }
    }
    ok_count += Exchange(request, std::move(tensors)).ok();
  }
  EXPECT_GT(ok_count, 100);
  ExpectAlive();
  EXPECT_LT(PeakMemoryBytes(), memory_before + kMemoryGrowthBytesMax);
}

// Generates requests that use a segment. Most of them are almost valid.
class SharedRequests {
 public:
  static constexpr uint64_t kSegmentId = 3;
  static constexpr size_t kSegmentBytes = 1 << 20;

  explicit SharedRequests(RandomStream* random) : random_(*random) {}

  // Adds the tensors to be sent beside the request to `beside`.
  proto::ExchangeRequest Make(std::vector<Tensor>* beside) {
    proto::ExchangeRequest request;
    request.set_segment_id(Rarely() ? random_.Below(5) : kSegmentId);
    for (uint64_t i = random_.Below(3); i > 0; --i) {
      request.add_update_handles(Handle());
      request.add_update_kinds(
          random_.Below(2) ? proto::ASSIGN_ADD
                           : static_cast<proto::UpdateKind>(random_.Below(9)));
    }
    for (uint64_t i = random_.Below(3); i > 0; --i) {
      request.add_pull_handles(Handle());
      request.add_pull_held_versions(0);
    }
    if (random_.Below(4) == 0) request.add_gather_handles(0);
    for (uint64_t i = random_.Below(4); i > 0; --i) {
      AddTensor(&request, beside);
    }
    const int answer_count =
        request.gather_handles_size() + request.pull_handles_size();
    if (random_.Below(2)) {
      for (int i = 0; i < answer_count; ++i) {
        request.add_answer_offsets(Offset());
      }
    }
    if (Rarely()) request.add_answer_offsets(64);
    return request;
  }

 private:
  bool Rarely() { return random_.Below(20) == 0; }
  uint32_t Handle() { return static_cast<uint32_t>(random_.Below(3)); }

  uint64_t Offset() {
    const uint64_t extremes[] = {0,
                                 1,
                                 kSegmentBytes - 32,
                                 kSegmentBytes - 1,
                                 kSegmentBytes,
                                 uint64_t{1} << 40,
                                 std::numeric_limits<uint64_t>::max(),
                                 std::numeric_limits<uint64_t>::max() - 63};
    return random_.Below(3) ? 64 * (1 + random_.Below(3))
                            : extremes[random_.Below(8)];
  }

  void AddTensor(proto::ExchangeRequest* request, std::vector<Tensor>* beside) {
    const uint64_t offset = Offset();
    request->add_tensor_offsets(offset);
    if (offset == 0) {
      if (random_.Below(4)) beside->push_back(Tensor::Scalar(1.0f));
      return;
    }
    const bool is_index = random_.Below(3) == 0;
    const DType dtype = is_index ? DType::kInt64 : DType::kFloat32;
    request->add_tensor_dtypes(Rarely() ? static_cast<int>(random_.Below(30))
                                        : static_cast<int>(dtype));
    request->add_tensor_ranks(Rarely() ? 9 - static_cast<int>(random_.Below(20))
                                       : 2 - is_index);
    request->add_tensor_dims(Rarely() ? int64_t{1} << random_.Below(63)
                                      : 4 - 2 * is_index);
    if (!is_index) request->add_tensor_dims(2);
  }

  RandomStream& random_;
};

// The offsets, types and contents of the segment are hostile, and the contents
// change during the requests.
TEST_F(ParameterServiceFuzzTest, AnswersRequestsThatUseSharedMemory) {
  TestShare share(service_.service(), Identity(), SharedRequests::kSegmentId,
                  SharedRequests::kSegmentBytes);
  ASSERT_TRUE(share.event().is_shared()) << share.event().why_not();
  std::atomic<bool> is_over{false};
  std::thread segment_writer([&] {
    auto* const words =
        reinterpret_cast<std::atomic<uint64_t>*>(share.data() + 64);
    for (uint64_t i = 0; !is_over.load(std::memory_order_relaxed); ++i) {
      words[i % 16].store(i % 3 == 0 ? ~uint64_t{0} : i % 4,
                          std::memory_order_relaxed);
    }
  });
  const size_t memory_before = PeakMemoryBytes();
  SharedRequests requests(&random_);
  int ok_count = 0;
  for (int round = 0; round < 30000; ++round) {
    std::vector<Tensor> beside;
    const proto::ExchangeRequest request = requests.Make(&beside);
    ok_count += Exchange(request, std::move(beside)).ok();
  }
  is_over = true;
  segment_writer.join();
  EXPECT_GT(ok_count, 100);
  ExpectAlive();
  EXPECT_LT(PeakMemoryBytes(), memory_before + kMemoryGrowthBytesMax);
}

TEST_F(ParameterServiceFuzzTest, AnswersMutatedRequests) {
  proto::ExchangeRequest request;
  request.set_step_id(1);
  request.add_update_handles(0);
  request.add_update_kinds(proto::APPLY_SPARSE_GRADIENT);
  request.add_update_handles(1);
  request.add_update_kinds(proto::ASSIGN_ADD);
  request.add_gather_handles(2);
  request.add_pull_handles(1);
  request.add_pull_held_versions(7);
  std::string original;
  const std::vector<Tensor> tensors = {
      Tensor::FromValues<int64_t>({2}, {3, 1}),
      Tensor::Zeros(DType::kFloat32, Shape({2, 2})),
      Tensor::Zeros(DType::kFloat32, Shape({4, 2})),
      Tensor::FromValues<int64_t>({1}, {0})};
  for (const MessageSlice& slice :
       EncodeMessage(Identity(), {request.SerializeAsString(), tensors})) {
    original.append(reinterpret_cast<const char*>(slice.data),
                    slice.size_bytes);
  }
  const size_t memory_before = PeakMemoryBytes();
  const absl::string_view methods[] = {kDescribeMethod, kExchangeMethod,
                                       kSetOptimizerMethod};
  for (int round = 0; round < 30000; ++round) {
    auto bytes = std::make_shared<std::string>(original);
    for (uint64_t i = random_.Below(5); i > 0; --i) {
      (*bytes)[random_.Below(bytes->size())] =
          static_cast<char>(random_.Below(256));
    }
    if (random_.Below(8) == 0) bytes->resize(random_.Below(bytes->size()));
    const size_t cut = random_.Below(bytes->size() + 1);
    const auto* data = reinterpret_cast<const uint8_t*>(bytes->data());
    Call(methods[random_.Below(3)],
         {{data, cut, bytes}, {data + cut, bytes->size() - cut, bytes}})
        .status()
        .IgnoreError();
  }
  ExpectAlive();
  EXPECT_LT(PeakMemoryBytes(), memory_before + kMemoryGrowthBytesMax);
}

TEST_F(ParameterServiceFuzzTest, InvalidShardsTakeNoMemory) {
  const size_t memory_before = PeakMemoryBytes();
  for (int round = 0; round < 5000; ++round) {
    proto::ShardSpec spec;
    spec.set_shard_name(std::string(random_.Below(3), 'n'));
    spec.mutable_variable()->set_name("n");
    spec.mutable_variable()->set_dtype(
        static_cast<proto::DataType>(random_.Below(30)));
    for (uint64_t i = random_.Below(10); i > 0; --i) {
      spec.mutable_variable()->mutable_shape()->add_dim(
          random_.Below(2) ? int64_t{1} << random_.Below(63)
                           : static_cast<int64_t>(random_.Below(4)) - 1);
    }
    spec.set_row_begin(static_cast<int64_t>(random_.Below(4)) - 1);
    spec.set_row_end(static_cast<int64_t>(random_.Next64()) >>
                     random_.Below(64));
    service_.shard().Create(spec).status().IgnoreError();
  }
  ExpectAlive();
  EXPECT_LT(PeakMemoryBytes(), memory_before + kMemoryGrowthBytesMax);
}

TEST_F(ParameterServiceFuzzTest, ExchangeMustSetTheIncarnation) {
  proto::ExchangeRequest request;
  EXPECT_THAT(
      Call(kExchangeMethod,
           EncodeMessage({}, {request.SerializeAsString(), {}})),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               testing::HasSubstr("must set the callee's incarnation")));
}

}  // namespace
}  // namespace muster
