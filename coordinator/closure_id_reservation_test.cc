#include "coordinator/closure_id_reservation.h"

#include <cstdint>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kBlock = ClosureIdReservation::kBlockSize;

TEST(ClosureIdReservationTest, RecordsABlockBeforeItsFirstId) {
  std::vector<uint64_t> recorded;
  ClosureIdReservation ids({.first_id = 1, .record = [&](uint64_t limit) {
                              recorded.push_back(limit);
                              return absl::OkStatus();
                            }});
  EXPECT_EQ(ids.limit(), 1);
  ASSERT_OK(ids.Reserve(1));
  EXPECT_EQ(ids.limit(), 1 + kBlock);
  ASSERT_OK(ids.Reserve(kBlock));
  EXPECT_THAT(recorded, ElementsAre(1 + kBlock));
  ASSERT_OK(ids.Reserve(1 + 3 * kBlock));
  EXPECT_THAT(recorded, ElementsAre(1 + kBlock, 1 + 4 * kBlock));
}

TEST(ClosureIdReservationTest, ALaterCoordinatorBeginsAtTheLimit) {
  uint64_t limit = 1;
  const auto record = [&](uint64_t recorded) {
    EXPECT_GT(recorded, limit);
    limit = recorded;
    return absl::OkStatus();
  };
  for (int coordinator = 0; coordinator < 3; ++coordinator) {
    ClosureIdReservation ids({.first_id = limit, .record = record});
    ASSERT_OK(ids.Reserve(limit));
  }
  EXPECT_EQ(limit, 1 + 3 * kBlock);
}

TEST(ClosureIdReservationTest, AnIdThatIsNotRecordedIsNotReserved) {
  absl::Status error = absl::DataLossError("I/O error");
  ClosureIdReservation ids(
      {.first_id = 7, .record = [&](uint64_t) { return error; }});
  EXPECT_EQ(ids.Reserve(7), error);
  EXPECT_EQ(ids.limit(), 7);
  error = absl::OkStatus();
  EXPECT_OK(ids.Reserve(7));
  EXPECT_EQ(ids.limit(), 7 + kBlock);
}

TEST(ClosureIdReservationTest, SeveralThreadsRecordABlockOnce) {
  std::vector<uint64_t> recorded;
  ClosureIdReservation ids({.first_id = 1, .record = [&](uint64_t limit) {
                              recorded.push_back(limit);
                              return absl::OkStatus();
                            }});
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (uint64_t id = 1; id < 4 * kBlock; id += kBlock / 4) {
        EXPECT_OK(ids.Reserve(id));
        EXPECT_LT(id, ids.limit());
      }
    });
  }
  for (std::thread &thread : threads) thread.join();
  EXPECT_THAT(recorded, ElementsAre(1 + kBlock, 1 + 2 * kBlock, 1 + 3 * kBlock,
                                    1 + 4 * kBlock));
}

TEST(ClosureIdReservationTest, WithoutARecordIdsHaveNoLimit) {
  ClosureIdReservation ids({});
  EXPECT_OK(ids.Reserve(uint64_t{1} << 60));
}

}  // namespace
}  // namespace muster
