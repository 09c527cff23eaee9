#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/checkpoints/training_progress.h"
#include "common/learn/train/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/training_state.pb.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

// Resumes from `begin` if its epoch is not 0, and records the state after each
// epoch.
class StateKeeper final : public Callback {
 public:
  explicit StateKeeper(proto::TrainingState begin = {})
      : begin_(std::move(begin)) {}

  absl::Status OnTrainBegin(Model& model) override {
    if (begin_.epoch() == 0) return absl::OkStatus();
    return model.progress()->ResumeFrom(begin_);
  }
  absl::Status OnEpochEnd(Model& model, int, Logs&) override {
    states_.push_back(model.progress()->State().message());
    return absl::OkStatus();
  }

  const std::vector<proto::TrainingState>& states() const { return states_; }

 private:
  const proto::TrainingState begin_;
  std::vector<proto::TrainingState> states_;
};

absl::StatusOr<History> Train(int epochs, Callback* callback) {
  Model model = Sequential({Dense(1)});
  RETURN_IF_ERROR(
      model.Compile({.optimizer = Sgd(), .loss = MeanSquaredError()}));
  const Tensor ones = Tensor::Full(DType::kFloat32, {2, 1}, 1);
  return model.Fit(Dataset::FromTensorSlices({ones, ones}).Batch(2),
                   {.epochs = epochs,
                    .verbose = Verbosity::kSilent,
                    .callbacks = {callback}});
}

// A coordinator saves the state with each checkpoint, so it must stay small
// even after weeks.
TEST(TrainingStateTest, AnEpochAddsItsNumberAndItsLoss) {
  StateKeeper keeper;
  ASSERT_OK(Train(120, &keeper).status());
  const size_t bytes =
      keeper.states()[110].ByteSizeLong() - keeper.states()[10].ByteSizeLong();
  EXPECT_LE(bytes, 100 * (sizeof(double) + 2));
}

TEST(TrainingStateTest, ResumesWithTheHistory) {
  StateKeeper first;
  ASSERT_OK_AND_ASSIGN(const History whole, Train(3, &first));
  StateKeeper second(first.states()[1]);
  ASSERT_OK_AND_ASSIGN(const History resumed, Train(3, &second));
  EXPECT_THAT(resumed.epoch, ElementsAre(0, 1, 2));
  ASSERT_EQ(resumed.history.at("loss").size(), 3);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(resumed.history.at("loss")[i], whole.history.at("loss")[i]);
  }
}

TEST(TrainingStateTest, ResumesWithTheHistoryOfEarlierBuilds) {
  proto::TrainingState state;
  state.set_epoch(2);
  for (int i = 0; i < 2; ++i) {
    auto* const epoch = state.add_history();
    epoch->set_number(i);
    (*epoch->mutable_logs())["loss"] = 10 + i;
  }
  (*state.mutable_history(1)->mutable_logs())["val_loss"] = 5;
  StateKeeper keeper(state);
  ASSERT_OK_AND_ASSIGN(const History resumed, Train(2, &keeper));
  EXPECT_THAT(resumed.epoch, ElementsAre(0, 1));
  EXPECT_THAT(resumed.history, ElementsAre(Pair("loss", ElementsAre(10, 11)),
                                           Pair("val_loss", ElementsAre(5))));
}

}  // namespace
}  // namespace muster
