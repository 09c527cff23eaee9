#include "common/learn/train/checkpoints/callback_tensors.h"

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/strategy/worker_agreement.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// The chief's messages, in order. The chief's instance adds them, and the other
// instance reads them.
class Messages final : public WorkerAgreement {
 public:
  Messages(bool is_chief, std::vector<std::string>* sent)
      : is_chief_(is_chief), sent_(*sent) {}

  bool is_chief() const override { return is_chief_; }
  std::optional<uint64_t> shared_seed() const override { return 1; }
  absl::StatusOr<std::string> FromChief(absl::string_view,
                                        std::string bytes) const override {
    if (is_chief_) {
      sent_.push_back(bytes);
      return bytes;
    }
    if (next_ == sent_.size()) return absl::InternalError("nothing was sent");
    return sent_[next_++];
  }
  absl::StatusOr<bool> AgreeToStop(bool wants_stop) const override {
    return wants_stop;
  }

 private:
  const bool is_chief_;
  std::vector<std::string>& sent_;
  mutable size_t next_ = 0;
};

absl::StatusOr<Tensor> SendAndReceive(const absl::StatusOr<Tensor>& tensor) {
  std::vector<std::string> sent;
  const absl::StatusOr<Tensor> own =
      TensorFromChief(Messages(/*is_chief=*/true, &sent), "weights", tensor);
  EXPECT_EQ(own.status(), tensor.status());
  return TensorFromChief(Messages(/*is_chief=*/false, &sent), "weights",
                         Tensor());
}

TEST(TensorFromChiefTest, ArrivesWithItsTypeAndItsBits) {
  for (const Tensor& tensor :
       {Tensor::FromValues<float>({2, 2}, {1, -2, 0.1f, 1e30f}),
        Tensor::Scalar<int64_t>(7), Tensor(DType::kFloat32, {0, 3})}) {
    ASSERT_OK_AND_ASSIGN(const Tensor received, SendAndReceive(tensor));
    EXPECT_TRUE(BitwiseEqual(received, tensor)) << received.DebugString();
  }
}

TEST(TensorFromChiefTest, TensorsOfSeveralPiecesArrive) {
  // 130 MiB in pieces of 64.
  Tensor tensor(DType::kInt64, {130 << 17});
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    tensor.mutable_flat<int64_t>()[i] = i * 31;
  }
  ASSERT_OK_AND_ASSIGN(const Tensor received, SendAndReceive(tensor));
  EXPECT_TRUE(BitwiseEqual(received, tensor));
}

TEST(TensorFromChiefTest, AnErrorOfTheChiefIsThatOfAll) {
  EXPECT_THAT(SendAndReceive(absl::DataLossError("damaged")),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("damaged")));
}

}  // namespace
}  // namespace muster
