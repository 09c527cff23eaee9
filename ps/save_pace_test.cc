#include "ps/save_pace.h"

#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

class SavePaceTest : public testing::Test {
 protected:
  void Piece(absl::Duration work, int64_t exchanges) {
    worked_ += work;
    now_ += work;
    exchange_count_ += exchanges;
    pace_.EndPiece();
  }

  absl::Time now_ = absl::UnixEpoch();
  absl::Duration worked_ = absl::Seconds(7);
  int64_t exchange_count_ = 5;
  std::vector<absl::Duration> rests_;
  SavePace pace_{[this] { return exchange_count_; },
                 {.now = [this] { return now_; },
                  .worked = [this] { return worked_; },
                  .rest =
                      [this](absl::Duration rest) {
                        rests_.push_back(rest);
                        now_ += rest;
                      }}};
};

TEST_F(SavePaceTest, RestsTwelveTimesAsLongAsItWorked) {
  Piece(absl::Milliseconds(1), 1);
  Piece(absl::Milliseconds(2), 7);
  EXPECT_THAT(rests_,
              ElementsAre(absl::Milliseconds(12), absl::Milliseconds(24)));
}

TEST_F(SavePaceTest, RestsBetweenExchangesThatTakeLongerThanAPiece) {
  for (int i = 0; i < 10; ++i) Piece(absl::Milliseconds(1), 0);
  EXPECT_EQ(rests_.size(), 10u);
}

TEST_F(SavePaceTest, DoesNotRestAfterTrainingHasStopped) {
  Piece(absl::Milliseconds(1), 1);
  now_ += SavePace::kQuiet;
  Piece(absl::Milliseconds(1), 0);
  Piece(absl::Milliseconds(1), 0);
  EXPECT_THAT(rests_, ElementsAre(absl::Milliseconds(12)));
  Piece(absl::Milliseconds(1), 1);
  EXPECT_EQ(rests_.size(), 2u);
}

TEST_F(SavePaceTest, DoesNotCountWaitingForTheDisk) {
  now_ += absl::Milliseconds(300);
  Piece(absl::Milliseconds(1), 1);
  EXPECT_THAT(rests_, ElementsAre(absl::Milliseconds(12)));
}

TEST_F(SavePaceTest, RestIsBounded) {
  Piece(absl::Seconds(5), 1);
  EXPECT_THAT(rests_, ElementsAre(SavePace::kRestMax));
}

}  // namespace
}  // namespace muster
