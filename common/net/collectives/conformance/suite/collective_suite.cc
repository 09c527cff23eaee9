#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/conformance/backend.h"
#include "common/net/collectives/conformance/serial_reference.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

// Tests the results of collectives.
namespace muster {
namespace {

using ::testing::Each;

class CollectiveSuite
    : public testing::TestWithParam<std::tuple<CommunicatorBackend, int>> {
 protected:
  void SetUp() override {
    const auto& [backend, size] = GetParam();
    absl::StatusOr<RankGroup> group = backend.make(size);
    if (absl::IsUnavailable(group.status())) GTEST_SKIP() << group.status();
    ASSERT_OK(group);
    group_ = *std::move(group);
    for (int rank = 0; rank < size; ++rank) {
      ASSERT_EQ(group_[rank]->rank(), rank);
      ASSERT_EQ(group_[rank]->size(), size);
    }
  }

  int size() const { return static_cast<int>(group_.size()); }

  // None, one, fewer than ranks, one per rank, few, not divisible, and more
  // than any segment, stage or pipeline holds.
  std::vector<int64_t> ElementCounts(bool with_large) const {
    std::vector<int64_t> counts = {
        0, 1, size() - 1, size(), 37, 1000 + size() / 2, 20011};
    if (with_large) {
      counts.push_back(70001);
      counts.push_back(600007);
    }
    return counts;
  }

  void CheckAllReduce(ReduceOp op, DType dtype, int64_t element_count) {
    const Tensor expected = ReducedValues(op, dtype, element_count, size());
    const auto statuses =
        RunRanks(group_, [&](Communicator& communicator) -> absl::Status {
          Tensor buffer =
              RankValues(op, dtype, element_count, communicator.rank());
          RETURN_IF_ERROR(communicator.AllReduce(op, SpanOf(buffer),
                                                 {"sums", kCollectiveTimeout}));
          EXPECT_TRUE(BitwiseEqual(buffer, expected))
              << ReduceOpName(op) << " of " << buffer.DebugString()
              << " instead of " << expected.DebugString() << " on rank "
              << communicator.rank();
          return absl::OkStatus();
        });
    ASSERT_THAT(statuses, Each(IsOk()));
  }

  RankGroup group_;
};

TEST_P(CollectiveSuite, AllReduceMakesTheReductionOnEveryRank) {
  for (const ReduceOp op : AllReduceOps()) {
    for (const DType dtype : ReducibleDTypes()) {
      const bool with_large = op == ReduceOp::kSum ||
                              (op == ReduceOp::kMean && dtype == DType::kInt32);
      for (const int64_t count : ElementCounts(with_large)) {
        SCOPED_TRACE(absl::StrCat(count, " x ", DTypeString(dtype)));
        ASSERT_NO_FATAL_FAILURE(CheckAllReduce(op, dtype, count));
      }
    }
  }
}

TEST_P(CollectiveSuite, ReduceScatterLeavesEveryRankItsPart) {
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kMax}) {
    for (const DType dtype :
         {DType::kFloat32, DType::kBfloat16, DType::kInt64}) {
      for (const int64_t count : ElementCounts(op == ReduceOp::kSum)) {
        SCOPED_TRACE(absl::StrCat(count, " x ", DTypeString(dtype)));
        const Tensor expected = ReducedValues(op, dtype, count, size());
        const auto statuses =
            RunRanks(group_, [&](Communicator& communicator) -> absl::Status {
              const int rank = communicator.rank();
              Tensor buffer = RankValues(op, dtype, count, rank);
              RETURN_IF_ERROR(communicator.ReduceScatter(
                  op, SpanOf(buffer), {"parts", kCollectiveTimeout}));
              const auto part = Communicator::PartOf(count, rank, size());
              EXPECT_TRUE(
                  BitwiseEqual(buffer.SliceRows(part.begin, part.end),
                               expected.SliceRows(part.begin, part.end)))
                  << "rank " << rank;
              return absl::OkStatus();
            });
        ASSERT_THAT(statuses, Each(IsOk()));
      }
    }
  }
}

TEST_P(CollectiveSuite, ReduceScatterHasTheBitsOfAllReduce) {
  if (!std::get<0>(GetParam()).scatters_same_bits) {
    GTEST_SKIP() << "sums in another order";
  }
  for (const int64_t count : ElementCounts(/*with_large=*/true)) {
    SCOPED_TRACE(count);
    const auto statuses =
        RunRanks(group_, [&](Communicator& communicator) -> absl::Status {
          const int rank = communicator.rank();
          // Thirds, whose sum depends on the order.
          Tensor buffer(DType::kFloat32, Shape({count}));
          for (int64_t i = 0; i < count; ++i) {
            buffer.mutable_flat<float>()[i] =
                static_cast<float>(1 + (i * 7 + rank * 31) % 1009) / 3;
          }
          Tensor all = buffer.Clone();
          RETURN_IF_ERROR(communicator.AllReduce(ReduceOp::kSum, SpanOf(all),
                                                 {"sums", kCollectiveTimeout}));
          RETURN_IF_ERROR(communicator.ReduceScatter(
              ReduceOp::kSum, SpanOf(buffer), {"parts", kCollectiveTimeout}));
          const auto part = Communicator::PartOf(count, rank, size());
          EXPECT_TRUE(BitwiseEqual(buffer.SliceRows(part.begin, part.end),
                                   all.SliceRows(part.begin, part.end)))
              << "rank " << rank;
          return absl::OkStatus();
        });
    ASSERT_THAT(statuses, Each(IsOk()));
  }
}

class Shares {
 public:
  Shares(DType dtype, std::vector<int64_t> counts)
      : counts(std::move(counts)), whole(MakeWhole(dtype, this->counts)) {}

  static Tensor MakeWhole(DType dtype, const std::vector<int64_t>& counts) {
    int64_t total = 0;
    for (const int64_t count : counts) total += count;
    Tensor whole(dtype, Shape({total}));
    uint8_t* next = whole.mutable_raw_data();
    for (size_t rank = 0; rank < counts.size(); ++rank) {
      const Tensor part =
          RankPattern(dtype, counts[rank], static_cast<int>(rank));
      if (part.size_bytes() > 0) {
        std::memcpy(next, part.raw_data(), part.size_bytes());
      }
      next += part.size_bytes();
    }
    return whole;
  }

  const std::vector<int64_t> counts;
  const Tensor whole;
};

TEST_P(CollectiveSuite, AllGatherConcatenatesEvenRaggedAndEmptyParts) {
  std::vector<int64_t> even(size(), 5), ragged, sparse(size(), 0), large;
  for (int rank = 0; rank < size(); ++rank) {
    ragged.push_back((rank * 5) % 7);
    large.push_back(30000 + 1111 * rank);
  }
  sparse[size() - 1] = 3;
  for (const DType dtype : {DType::kFloat32, DType::kUint8, DType::kBool,
                            DType::kFloat16, DType::kInt64}) {
    for (const auto& counts :
         {even, ragged, sparse, large, std::vector<int64_t>(size(), 0)}) {
      const Shares shares(dtype, counts);
      for (const bool in_place : {false, true}) {
        const auto statuses =
            RunRanks(group_, [&](Communicator& communicator) -> absl::Status {
              const int rank = communicator.rank();
              Tensor output = Tensor::Zeros(dtype, shares.whole.shape());
              Tensor input = RankPattern(dtype, counts[rank], rank);
              int64_t begin = 0;
              for (int r = 0; r < rank; ++r) begin += counts[r];
              TensorSpan source = SpanOf(input);
              if (in_place) {
                const TensorSpan own =
                    SpanOf(output).Part(begin, begin + counts[rank]);
                if (own.size_bytes() > 0) {
                  std::memcpy(own.data, source.data, own.size_bytes());
                }
                source = own;
              }
              RETURN_IF_ERROR(
                  communicator.AllGather(source, counts, SpanOf(output),
                                         {"whole", kCollectiveTimeout}));
              EXPECT_TRUE(BitwiseEqual(output, shares.whole))
                  << "rank " << rank << " has " << output.DebugString();
              return absl::OkStatus();
            });
        ASSERT_THAT(statuses, Each(IsOk()));
      }
    }
  }
}

TEST_P(CollectiveSuite, BroadcastCopiesEveryRoot) {
  for (const DType dtype :
       {DType::kFloat32, DType::kBool, DType::kUint8, DType::kBfloat16}) {
    for (int root = 0; root < size(); ++root) {
      for (const int64_t count : {0, 1, 1001, 300007}) {
        if (count == 300007 && root != size() - 1) continue;
        const Tensor expected = RankPattern(dtype, count, root);
        const auto statuses =
            RunRanks(group_, [&](Communicator& communicator) -> absl::Status {
              Tensor buffer = RankPattern(dtype, count, communicator.rank());
              RETURN_IF_ERROR(communicator.Broadcast(
                  SpanOf(buffer), root, {"state", kCollectiveTimeout}));
              EXPECT_TRUE(BitwiseEqual(buffer, expected))
                  << "rank " << communicator.rank() << ", root " << root;
              return absl::OkStatus();
            });
        ASSERT_THAT(statuses, Each(IsOk()));
      }
    }
  }
}

TEST_P(CollectiveSuite, BarrierReturnsAfterAllRanksHaveCalledIt) {
  std::atomic<int> arrived = 0;
  const auto statuses =
      RunRanks(group_, [&](Communicator& communicator) -> absl::Status {
        for (int round = 1; round <= 20; ++round) {
          ++arrived;
          RETURN_IF_ERROR(communicator.Barrier({"start", kCollectiveTimeout}));
          EXPECT_GE(arrived.load(), round * size());
          RETURN_IF_ERROR(communicator.Barrier({"end", kCollectiveTimeout}));
        }
        return absl::OkStatus();
      });
  EXPECT_THAT(statuses, Each(IsOk()));
}

TEST_P(CollectiveSuite, RoundedSumsAreTheSameBitsOnAllRanksAndInEveryRun) {
  for (const DType dtype :
       {DType::kFloat32, DType::kFloat16, DType::kBfloat16}) {
    for (const int64_t count : {int64_t{7}, int64_t{5003}, int64_t{200003}}) {
      Tensor exact = Tensor::Zeros(DType::kFloat64, Shape({count}));
      for (int rank = 0; rank < size(); ++rank) {
        const Tensor values = RoughValues(dtype, count, rank);
        for (int64_t i = 0; i < count; ++i) {
          exact.mutable_flat<double>()[i] += values.ElementAsDouble(i);
        }
      }
      std::vector<Tensor> results(2 * size());
      const auto statuses =
          RunRanks(group_, [&](Communicator& communicator) -> absl::Status {
            for (int run = 0; run < 2; ++run) {
              Tensor buffer = RoughValues(dtype, count, communicator.rank());
              RETURN_IF_ERROR(
                  communicator.AllReduce(ReduceOp::kSum, SpanOf(buffer),
                                         {"rough", kCollectiveTimeout}));
              results[run * size() + communicator.rank()] = buffer;
            }
            return absl::OkStatus();
          });
      ASSERT_THAT(statuses, Each(IsOk()));
      for (const Tensor& result : results) {
        ASSERT_TRUE(BitwiseEqual(result, results[0]));
      }
      const double ulp = dtype == DType::kFloat32   ? 0x1p-23
                         : dtype == DType::kFloat16 ? 0x1p-10
                                                    : 0x1p-7;
      for (int64_t i = 0; i < count; ++i) {
        ASSERT_NEAR(results[0].ElementAsDouble(i), exact.ElementAsDouble(i),
                    ulp * size() * size());
      }
    }
  }
}

TEST_P(CollectiveSuite, AllocatedMemoryIsZeroedAlignedAndOutlivesTheGroup) {
  std::vector<std::shared_ptr<Buffer>> buffers(size());
  constexpr int64_t kCount = 3001;
  const auto statuses =
      RunRanks(group_, [&](Communicator& communicator) -> absl::Status {
        const int rank = communicator.rank();
        for (const size_t size_bytes : {size_t{0}, kCount * sizeof(float)}) {
          ASSIGN_OR_RETURN(
              buffers[rank],
              communicator.Allocate(size_bytes, {"pack", kCollectiveTimeout}));
        }
        uint8_t* const data = buffers[rank]->data();
        EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % Buffer::kAlignmentBytes,
                  0u);
        EXPECT_TRUE(std::all_of(data, data + buffers[rank]->size_bytes(),
                                [](uint8_t byte) { return byte == 0; }));
        Tensor pack(DType::kFloat32, Shape({kCount}), buffers[rank]);
        const Tensor values =
            RankValues(ReduceOp::kSum, DType::kFloat32, kCount, rank);
        for (int round = 0; round < 3; ++round) {
          std::memcpy(data, values.raw_data(), values.size_bytes());
          RETURN_IF_ERROR(communicator.AllReduce(ReduceOp::kSum, SpanOf(pack),
                                                 {"pack", kCollectiveTimeout}));
        }
        // The second part of the memory only, from its middle.
        std::memcpy(data, values.raw_data(), values.size_bytes());
        return communicator.AllReduce(ReduceOp::kSum,
                                      SpanOf(pack).Part(1001, 3001),
                                      {"part of the pack", kCollectiveTimeout});
      });
  ASSERT_THAT(statuses, Each(IsOk()));
  group_.clear();
  const int size = static_cast<int>(buffers.size());
  const Tensor expected =
      ReducedValues(ReduceOp::kSum, DType::kFloat32, kCount, size);
  for (int rank = 0; rank < size; ++rank) {
    const Tensor pack(DType::kFloat32, Shape({kCount}), buffers[rank]);
    EXPECT_TRUE(BitwiseEqual(pack.SliceRows(1001, kCount),
                             expected.SliceRows(1001, kCount)));
    EXPECT_TRUE(
        BitwiseEqual(pack.SliceRows(0, 1001),
                     RankValues(ReduceOp::kSum, DType::kFloat32, kCount, rank)
                         .SliceRows(0, 1001)));
  }
}

// Ranks can run ahead of each other if a collective does not wait for all
// ranks.
TEST_P(CollectiveSuite, CollectivesOfAllKindsFollowEachOther) {
  const std::vector<int64_t> counts(size(), 9);
  const auto statuses =
      RunRanks(group_, [&](Communicator& communicator) -> absl::Status {
        const int rank = communicator.rank();
        for (int round = 0; round < 25; ++round) {
          const int64_t count = round % 5 == 4 ? 40000 : 3 + round;
          const int root = round % size();
          Tensor state = RankPattern(DType::kInt32, count, rank);
          RETURN_IF_ERROR(communicator.Broadcast(
              SpanOf(state), root, {"state", kCollectiveTimeout}));
          EXPECT_TRUE(
              BitwiseEqual(state, RankPattern(DType::kInt32, count, root)));
          Tensor sum = RankValues(ReduceOp::kSum, DType::kInt32, count, rank);
          RETURN_IF_ERROR(communicator.AllReduce(ReduceOp::kSum, SpanOf(sum),
                                                 {"sum", kCollectiveTimeout}));
          EXPECT_TRUE(BitwiseEqual(
              sum,
              ReducedValues(ReduceOp::kSum, DType::kInt32, count, size())));
          Tensor input = RankPattern(DType::kUint8, 9, rank);
          Tensor output(DType::kUint8, Shape({9 * size()}));
          RETURN_IF_ERROR(
              communicator.AllGather(SpanOf(input), counts, SpanOf(output),
                                     {"whole", kCollectiveTimeout}));
          EXPECT_TRUE(
              BitwiseEqual(output, Shares::MakeWhole(DType::kUint8, counts)));
          if (round % 7 == 0) {
            RETURN_IF_ERROR(
                communicator.Barrier({"barrier", kCollectiveTimeout}));
          }
        }
        return absl::OkStatus();
      });
  EXPECT_THAT(statuses, Each(IsOk()));
}

TEST_P(CollectiveSuite, UnsupportedReductionsAreRefused) {
  for (const DType dtype : {DType::kBool, DType::kUint8}) {
    const auto statuses = RunRanks(group_, [&](Communicator& communicator) {
      Tensor buffer = RankPattern(dtype, 4, communicator.rank());
      return communicator.AllReduce(ReduceOp::kSum, SpanOf(buffer),
                                    {"flags", kCollectiveTimeout});
    });
    EXPECT_THAT(statuses, Each(StatusIs(absl::StatusCode::kUnimplemented)));
  }
}

std::vector<std::tuple<CommunicatorBackend, int>> BackendsAndSizes() {
  std::vector<std::tuple<CommunicatorBackend, int>> cases;
  for (const CommunicatorBackend& backend : RegisteredBackends()) {
    for (const int size : {1, 2, 3, 4, 5, 8, 16}) {
      if (size <= backend.size_max) cases.emplace_back(backend, size);
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Backends, CollectiveSuite,
                         testing::ValuesIn(BackendsAndSizes()),
                         [](const auto& info) {
                           return absl::StrCat(std::get<0>(info.param).name,
                                               "x", std::get<1>(info.param));
                         });

}  // namespace

}  // namespace muster
