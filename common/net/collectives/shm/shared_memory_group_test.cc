#include "common/net/collectives/shm/shared_memory_group.h"

#include <sys/wait.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/reduce_kernels.h"
#include "common/net/collectives/reduce_op.h"
#include "common/net/collectives/shm/group_options.h"
#include "common/net/collectives/shm/testing/ranks.h"
#include "common/net/collectives/tensor_span.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr DType kReducible[] = {DType::kFloat32, DType::kFloat64,
                                DType::kFloat16, DType::kBfloat16,
                                DType::kInt32,   DType::kInt64};
constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kMin,
                             ReduceOp::kMax, ReduceOp::kProd};
constexpr CollectiveCall kCall = {.name = "a tensor",
                                  .timeout = absl::Seconds(120)};

// Returns pseudorandom elements. Integers have arbitrary bits. Floats are in
// [-2, 2), without NaNs, whose bits may differ.
std::vector<uint8_t> ElementsOf(DType dtype, int64_t count, int rank) {
  std::vector<uint8_t> bytes(count * SizeOf(dtype));
  uint64_t bits = FoldIn(rank, count);
  VisitNumber(dtype, [&]<typename T>() {
    for (int64_t i = 0; i < count; ++i) {
      T value;
      bits = bits * 6364136223846793005u + 1442695040888963407u;
      if constexpr (std::is_integral_v<T>) {
        value = static_cast<T>(bits >> 5);
      } else {
        value = static_cast<T>(UnitFloat(bits >> 32) * 4.0f - 2.0f);
      }
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
  });
  return bytes;
}

std::vector<uint8_t> ReduceAll(ReduceOp op, DType dtype, int64_t count,
                               int size) {
  std::vector<std::vector<uint8_t>> inputs;
  std::vector<const void*> pointers;
  for (int rank = 0; rank < size; ++rank) {
    inputs.push_back(ElementsOf(dtype, count, rank));
    pointers.push_back(inputs.back().data());
  }
  std::vector<uint8_t> result(count * SizeOf(dtype));
  void* const outputs[] = {result.data()};
  Reduce(op, dtype, count, pointers, outputs);
  return result;
}

// Elements in memory that is registered, by Allocate(), or not.
class Memory {
 public:
  Memory(Communicator& communicator, bool is_registered, DType dtype,
         int64_t count)
      : span_{dtype, count, nullptr}, plain_(span_.size_bytes() + 64) {
    span_.data = plain_.data();
    if (!is_registered) return;
    auto buffer = communicator.Allocate(span_.size_bytes(), kCall);
    EXPECT_OK(buffer.status());
    registered_ = *buffer;
    span_.data = registered_->data();
  }

  TensorSpan Fill(const std::vector<uint8_t>& bytes) {
    if (!bytes.empty()) std::memcpy(span_.data, bytes.data(), bytes.size());
    return span_;
  }

  std::vector<uint8_t> Part(int64_t begin, int64_t end) const {
    const TensorSpan part = span_.Part(begin, end);
    return std::vector<uint8_t>(part.bytes(), part.bytes() + part.size_bytes());
  }
  std::vector<uint8_t> All() const { return Part(0, span_.element_count); }

 private:
  TensorSpan span_;
  std::vector<uint8_t> plain_;
  std::shared_ptr<Buffer> registered_;
};

struct Setting {
  std::string name;
  bool are_threads;
  SharedMemoryTuning tuning;

  friend std::ostream& operator<<(std::ostream& out, const Setting& setting) {
    return out << setting.name;
  }
};

class SharedMemoryGroupTest
    : public testing::TestWithParam<std::tuple<Setting, int>> {
 protected:
  int size() const { return std::get<1>(GetParam()); }

  // Runs `body` on all ranks and expects that it succeeds on each.
  void OnAllRanks(const RankBody& body) {
    const Setting& setting = std::get<0>(GetParam());
    if (setting.are_threads) {
      RunThreadRanks(size(), setting.tuning, body);
      return;
    }
    ForkedRanks ranks(size(), setting.tuning, body);
    for (int rank = 0; rank < size(); ++rank) {
      EXPECT_EQ(ranks.Wait(rank), 0) << "rank " << rank;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(
    Groups, SharedMemoryGroupTest,
    testing::Combine(testing::Values(Setting{"Threads", true, {}},
                                     Setting{"Processes", false, {}},
                                     Setting{"Staged",
                                             false,
                                             {.staged_bytes_max = SIZE_MAX}},
                                     Setting{"AlwaysReading", false, {64, 0}},
                                     Setting{"NeverOneShot", true, {0, 0}}),
                     testing::Values(1, 2, 3, 4, 7)),
    [](const auto& info) {
      return absl::StrCat(std::get<0>(info.param).name,
                          std::get<1>(info.param));
    });

INSTANTIATE_TEST_SUITE_P(
    ManyRanks, SharedMemoryGroupTest,
    testing::Combine(testing::Values(Setting{"Threads", true, {}},
                                     Setting{"Processes", false, {}}),
                     testing::Values(16)),
    [](const auto& info) {
      return absl::StrCat(std::get<0>(info.param).name,
                          std::get<1>(info.param));
    });

TEST_P(SharedMemoryGroupTest, AllReduceOfEveryOpAndDType) {
  OnAllRanks([](Communicator& communicator) {
    for (const bool is_registered : {false, true}) {
      for (const DType dtype : kReducible) {
        for (const int64_t count : {0, 1, 5, 700, 3000}) {
          Memory memory(communicator, is_registered, dtype, count);
          for (const ReduceOp op : kOps) {
            const TensorSpan span =
                memory.Fill(ElementsOf(dtype, count, communicator.rank()));
            ASSERT_OK(communicator.AllReduce(op, span, kCall));
            EXPECT_EQ(memory.All(),
                      ReduceAll(op, dtype, count, communicator.size()))
                << ReduceOpName(op) << " of " << count << " " << dtype;
          }
        }
      }
    }
  });
}

TEST_P(SharedMemoryGroupTest, AllReduceOfEverySize) {
  OnAllRanks([](Communicator& communicator) {
    for (const bool is_registered : {false, true}) {
      for (const int64_t count :
           {15, 16, 17, 511, 512, 513, 16384, 16385, 65536, 200001}) {
        Memory memory(communicator, is_registered, DType::kFloat32, count);
        const TensorSpan span = memory.Fill(
            ElementsOf(DType::kFloat32, count, communicator.rank()));
        ASSERT_OK(communicator.AllReduce(ReduceOp::kSum, span, kCall));
        EXPECT_TRUE(memory.All() == ReduceAll(ReduceOp::kSum, DType::kFloat32,
                                              count, communicator.size()))
            << count;
      }
    }
  });
}

TEST_P(SharedMemoryGroupTest, RanksMayMixRegisteredAndPlainMemory) {
  OnAllRanks([](Communicator& communicator) {
    for (const int64_t count : {100, 5000, 100000}) {
      const auto buffer = communicator.Allocate(count * 4, kCall);
      ASSERT_OK(buffer.status());
      std::vector<uint8_t> plain(count * 4);
      const bool is_registered = communicator.rank() % 2 == 0;
      const TensorSpan span = {
          DType::kInt32, count,
          is_registered ? (*buffer)->data() : plain.data()};
      const std::vector<uint8_t> own =
          ElementsOf(DType::kInt32, count, communicator.rank());
      const std::vector<uint8_t> expected =
          ReduceAll(ReduceOp::kSum, DType::kInt32, count, communicator.size());
      std::memcpy(span.data, own.data(), own.size());
      ASSERT_OK(communicator.AllReduce(ReduceOp::kSum, span, kCall));
      EXPECT_EQ(std::memcmp(span.data, expected.data(), expected.size()), 0);
      std::memcpy(span.data, own.data(), own.size());
      ASSERT_OK(communicator.ReduceScatter(ReduceOp::kSum, span, kCall));
      const auto part =
          Communicator::PartOf(count, communicator.rank(), communicator.size());
      EXPECT_EQ(std::memcmp(span.Part(part.begin, part.end).data,
                            expected.data() + part.begin * 4,
                            (part.end - part.begin) * 4),
                0);
    }
  });
}

TEST_P(SharedMemoryGroupTest, ReduceScatterLeavesEachItsPart) {
  OnAllRanks([](Communicator& communicator) {
    for (const bool is_registered : {false, true}) {
      for (const int64_t count : {0, 1, 10, 513, 20000, 200001}) {
        Memory memory(communicator, is_registered, DType::kBfloat16, count);
        const TensorSpan span = memory.Fill(
            ElementsOf(DType::kBfloat16, count, communicator.rank()));
        ASSERT_OK(communicator.ReduceScatter(ReduceOp::kMean, span, kCall));
        const auto [begin, end] = Communicator::PartOf(
            count, communicator.rank(), communicator.size());
        const std::vector<uint8_t> all = ReduceAll(
            ReduceOp::kMean, DType::kBfloat16, count, communicator.size());
        EXPECT_EQ(memory.Part(begin, end),
                  std::vector<uint8_t>(all.begin() + begin * 2,
                                       all.begin() + end * 2))
            << count;
      }
    }
  });
}

TEST_P(SharedMemoryGroupTest, AllGatherConcatenatesRaggedParts) {
  OnAllRanks([](Communicator& communicator) {
    const int size = communicator.size();
    for (const bool is_registered : {false, true}) {
      for (const int64_t unit : {1, 40, 7000, 90000}) {
        std::vector<int64_t> counts;
        std::vector<uint8_t> expected;
        for (int rank = 0; rank < size; ++rank) {
          counts.push_back(rank == 1 ? 0 : unit * (rank % 3 + 1));
          const auto part = ElementsOf(DType::kFloat32, counts.back(), rank);
          expected.insert(expected.end(), part.begin(), part.end());
        }
        const int64_t own = counts[communicator.rank()];
        const int64_t total = static_cast<int64_t>(expected.size()) / 4;
        Memory input(communicator, is_registered, DType::kFloat32,
                     unit * 3);  // Equal allocations on all ranks.
        Memory output(communicator, is_registered, DType::kFloat32, total);
        const std::vector<uint8_t> bytes =
            ElementsOf(DType::kFloat32, own, communicator.rank());
        const TensorSpan out = output.Fill({});
        ASSERT_OK(communicator.AllGather(input.Fill(bytes).Part(0, own), counts,
                                         out, kCall));
        EXPECT_TRUE(output.All() == expected) << unit;

        // Also with the input as a part of the output.
        int64_t begin = 0;
        for (int rank = 0; rank < communicator.rank(); ++rank) {
          begin += counts[rank];
        }
        std::memset(out.data, 0xee, out.size_bytes());
        const TensorSpan within = out.Part(begin, begin + own);
        if (own > 0) std::memcpy(within.data, bytes.data(), bytes.size());
        ASSERT_OK(communicator.AllGather(within, counts, out, kCall));
        EXPECT_TRUE(output.All() == expected) << unit;
      }
    }
  });
}

TEST_P(SharedMemoryGroupTest, BroadcastFromEveryRoot) {
  OnAllRanks([](Communicator& communicator) {
    for (const bool is_registered : {false, true}) {
      for (const int64_t count : {0, 1, 3000, 50000, 1000001}) {
        Memory memory(communicator, is_registered, DType::kUint8, count);
        for (int root = 0;
             root<communicator.size(); root += communicator.size()> 4 ? 5 : 1) {
          const TensorSpan span = memory.Fill(
              ElementsOf(DType::kUint8, count, communicator.rank()));
          ASSERT_OK(communicator.Broadcast(span, root, kCall));
          EXPECT_TRUE(memory.All() == ElementsOf(DType::kUint8, count, root));
        }
      }
    }
  });
}

// A rank waits for others only if it must, so one rank may run ahead.
TEST_P(SharedMemoryGroupTest, ManySmallCallsInARowStayApart) {
  OnAllRanks([](Communicator& communicator) {
    for (int64_t i = 0; i < 2000; ++i) {
      int64_t values[3] = {i, communicator.rank(), 1};
      const TensorSpan span = {DType::kInt64, 3, values};
      ASSERT_OK(communicator.AllReduce(ReduceOp::kSum, span, kCall));
      const int64_t size = communicator.size();
      ASSERT_EQ(values[0], i * size);
      ASSERT_EQ(values[1], size * (size - 1) / 2);
      ASSERT_EQ(values[2], size);
      if (i % 7 == 0) {
        int64_t root = communicator.rank() == i % size ? i : -1;
        ASSERT_OK(communicator.Broadcast({DType::kInt64, 1, &root},
                                         static_cast<int>(i % size), kCall));
        ASSERT_EQ(root, i);
      }
      if (i % 5 == 0) {
        ASSERT_OK(communicator.Barrier(kCall));
      }
    }
  });
}

TEST_P(SharedMemoryGroupTest, AllocatedMemoryIsZeroedAndOutlivesTheGroup) {
  OnAllRanks([](Communicator& communicator) {
    std::shared_ptr<Buffer> kept;
    for (const size_t size_bytes : {0, 1, 100000}) {
      auto buffer = communicator.Allocate(size_bytes, kCall);
      ASSERT_OK(buffer.status());
      ASSERT_EQ((*buffer)->size_bytes(), size_bytes);
      EXPECT_EQ(reinterpret_cast<uintptr_t>((*buffer)->data()) %
                    Buffer::kAlignmentBytes,
                0u);
      for (size_t i = 0; i < size_bytes; ++i) {
        ASSERT_EQ((*buffer)->data()[i], 0);
      }
      kept = *buffer;
    }
    ASSERT_OK(communicator.Barrier(kCall));
  });
}

}  // namespace
}  // namespace muster
