#include "common/net/collectives/schedule.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr int kSizeMax = 64;

// The history of one element of a rank's buffer: which ranks contributed,
// whether any contributed twice, and whether the schedule marked the sum as
// complete.
struct Value {
  uint64_t contributors = 0;  // One bit per rank.
  bool has_duplicates = false;
  bool is_complete = false;
};

uint64_t BitOf(int rank) { return uint64_t{1} << rank; }

// Runs the schedules of all ranks step by step over symbolic values. Fails the
// test if a transfer has no counterpart.
class Walk {
 public:
  Walk(std::vector<Schedule> schedules, int64_t element_count)
      : schedules_(std::move(schedules)) {
    const int size = static_cast<int>(schedules_.size());
    buffers.resize(size, std::vector<Value>(element_count));
    sent_elements.resize(size);
    for (int rank = 0; rank < size; ++rank) {
      for (Value& value : buffers[rank]) value.contributors = BitOf(rank);
    }
  }

  void Run() {
    step_count = 0;
    for (const Schedule& schedule : schedules_) {
      step_count = std::max(step_count, schedule.size());
    }
    for (size_t step = 0; step < step_count; ++step) RunStep(step);
  }

  std::vector<std::vector<Value>> buffers;  // [rank][element]
  std::vector<int64_t> sent_elements;
  size_t step_count = 0;

 private:
  using Key = std::tuple<int, int, int64_t, int64_t>;  // from, to, range

  void RunStep(size_t step) {
    const std::vector<std::vector<Value>> before = buffers;
    std::multiset<Key> sent, received;
    for (size_t rank = 0; rank < schedules_.size(); ++rank) {
      if (step >= schedules_[rank].size()) continue;
      for (const Transfer& send : schedules_[rank][step].sends) {
        sent.insert({rank, send.peer, send.range.begin, send.range.end});
        sent_elements[rank] += send.range.end - send.range.begin;
      }
      for (const Transfer& receive : schedules_[rank][step].receives) {
        received.insert(
            {receive.peer, rank, receive.range.begin, receive.range.end});
        Apply(before[receive.peer], receive, buffers[rank]);
      }
    }
    ASSERT_EQ(sent, received) << "step " << step;
  }

  static void Apply(const std::vector<Value>& source, const Transfer& receive,
                    std::vector<Value>& destination) {
    for (int64_t i = receive.range.begin; i < receive.range.end; ++i) {
      if (receive.action == Transfer::Action::kStore) {
        destination[i] = source[i];
        continue;
      }
      destination[i].has_duplicates |=
          source[i].has_duplicates ||
          (destination[i].contributors & source[i].contributors) != 0;
      destination[i].contributors |= source[i].contributors;
      ASSERT_FALSE(destination[i].is_complete);
      destination[i].is_complete =
          receive.action == Transfer::Action::kAccumulateLast;
    }
  }

  const std::vector<Schedule> schedules_;
};

// True if every rank contributed exactly once and the sum is marked as
// complete.
bool IsTheSum(const Value& value, int size) {
  const uint64_t everybody = ~uint64_t{0} >> (64 - size);
  return value.contributors == everybody && !value.has_duplicates &&
         (size == 1 || value.is_complete);
}

std::vector<int64_t> ElementCounts(int size) {
  return {0, 1, size - 1, size, size + 1, 3 * size + 2};
}

class AllReduceScheduleTest : public testing::TestWithParam<Algorithm> {};

TEST_P(AllReduceScheduleTest, AddsEveryRankOnceEverywhere) {
  for (int size = 1; size <= kSizeMax; ++size) {
    for (const int64_t count : ElementCounts(size)) {
      std::vector<Schedule> schedules;
      for (int rank = 0; rank < size; ++rank) {
        schedules.push_back(AllReduceSchedule(GetParam(), rank, size, count));
      }
      Walk walk(schedules, count);
      walk.Run();
      for (int rank = 0; rank < size; ++rank) {
        for (const Value& value : walk.buffers[rank]) {
          ASSERT_TRUE(IsTheSum(value, size))
              << size << " ranks, " << count << " elements, rank " << rank;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, AllReduceScheduleTest,
                         testing::Values(Algorithm::kDirect, Algorithm::kRing,
                                         Algorithm::kHalvingDoubling),
                         [](const auto& info) {
                           std::string name(AlgorithmName(info.param));
                           std::erase(name, '-');
                           return name;
                         });

TEST(AllReduceScheduleTest, SendsNoMoreThanPromised) {
  for (const int size : {2, 4, 8, 64}) {
    const int64_t count = size * int64_t{4};
    for (const auto& [algorithm, step_count] : std::map<Algorithm, int>{
             {Algorithm::kDirect, 2},
             {Algorithm::kRing, 2 * (size - 1)},
             {Algorithm::kHalvingDoubling, 2 * __builtin_ctz(size)}}) {
      std::vector<Schedule> schedules;
      for (int rank = 0; rank < size; ++rank) {
        schedules.push_back(AllReduceSchedule(algorithm, rank, size, count));
      }
      Walk walk(schedules, count);
      walk.Run();
      EXPECT_EQ(walk.step_count, static_cast<size_t>(step_count));
      EXPECT_THAT(walk.sent_elements,
                  testing::Each(2 * (size - 1) * count / size));
    }
  }
}

TEST(ReduceScatterScheduleTest, LeavesEveryRankItsPart) {
  for (const Algorithm algorithm :
       {Algorithm::kDirect, Algorithm::kRing, Algorithm::kHalvingDoubling}) {
    for (int size = 1; size <= kSizeMax; ++size) {
      for (const int64_t count : ElementCounts(size)) {
        std::vector<Schedule> schedules;
        for (int rank = 0; rank < size; ++rank) {
          schedules.push_back(
              ReduceScatterSchedule(algorithm, rank, size, count));
        }
        Walk walk(schedules, count);
        walk.Run();
        for (int rank = 0; rank < size; ++rank) {
          const auto part = Communicator::PartOf(count, rank, size);
          for (int64_t i = part.begin; i < part.end; ++i) {
            ASSERT_TRUE(IsTheSum(walk.buffers[rank][i], size));
          }
        }
      }
    }
  }
}

TEST(AllGatherScheduleTest, BringsRaggedAndEmptyPartsEverywhere) {
  for (const Algorithm algorithm : {Algorithm::kDirect, Algorithm::kRing}) {
    for (int size = 1; size <= kSizeMax; ++size) {
      std::vector<int64_t> ends;
      int64_t count = 0;
      for (int rank = 0; rank < size; ++rank) {
        ends.push_back(count += rank % 3);
      }
      std::vector<Schedule> schedules;
      for (int rank = 0; rank < size; ++rank) {
        schedules.push_back(AllGatherSchedule(algorithm, rank, ends));
      }
      Walk walk(schedules, count);
      walk.Run();
      for (int rank = 0; rank < size; ++rank) {
        for (int owner = 0; owner < size; ++owner) {
          for (int64_t i = ends[owner] - owner % 3; i < ends[owner]; ++i) {
            ASSERT_EQ(walk.buffers[rank][i].contributors, BitOf(owner));
          }
        }
      }
    }
  }
}

TEST(BroadcastScheduleTest, ReachesEveryRankFromEveryRoot) {
  for (int size = 1; size <= kSizeMax; ++size) {
    for (int root = 0; root < size; ++root) {
      std::vector<Schedule> schedules;
      for (int rank = 0; rank < size; ++rank) {
        schedules.push_back(BroadcastSchedule(rank, size, root, 2));
      }
      Walk walk(schedules, 2);
      walk.Run();
      for (int rank = 0; rank < size; ++rank) {
        ASSERT_EQ(walk.buffers[rank][1].contributors, BitOf(root));
      }
    }
  }
}

TEST(BarrierScheduleTest, EachRankHasDataOfAllRanksAtTheEnd) {
  for (int size = 1; size <= kSizeMax; ++size) {
    std::vector<std::set<int>> heard_of(size);
    for (int rank = 0; rank < size; ++rank) heard_of[rank] = {rank};
    const size_t step_count = BarrierSchedule(0, size).size();
    for (size_t step = 0; step < step_count; ++step) {
      const std::vector<std::set<int>> before = heard_of;
      for (int rank = 0; rank < size; ++rank) {
        const Schedule schedule = BarrierSchedule(rank, size);
        const int source = schedule[step].receives[0].peer;
        ASSERT_EQ(BarrierSchedule(source, size)[step].sends[0].peer, rank);
        heard_of[rank].insert(before[source].begin(), before[source].end());
      }
    }
    for (int rank = 0; rank < size; ++rank) {
      ASSERT_EQ(static_cast<int>(heard_of[rank].size()), size);
    }
  }
}

}  // namespace
}  // namespace muster
