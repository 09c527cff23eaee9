#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "common/net/collectives/conformance/backend.h"
#include "common/net/collectives/conformance/lane_decorator.h"
#include "common/net/collectives/conformance/message_backends.h"
#include "common/net/collectives/conformance/serial_reference.h"
#include "common/net/collectives/message/testing/memory_lane.h"
#include "common/net/collectives/schedule.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

// Injects a fault into one frame of a collective, for each frame in turn.
namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint64_t kGeneration = 5;
constexpr int kSize = 3;
// Two segments per part.
constexpr int64_t kElementCount = kSize * 300000;

enum class Fault {
  kFailSend,
  kFailReceive,
  kDrop,
  kDuplicate,
  kDelay,
  kStale,  // The frame arrives twice, first with an earlier generation.
};

// Selects the frame of one rank into which the fault is injected: the n-th data
// frame that the rank sends or receives, counted over all its lanes. 0: none.
struct Injection {
  Fault fault;
  int occurrence = 0;
  int passed = 0;
  bool was_injected = false;
};

class FaultyLane final : public LaneDecorator {
 public:
  FaultyLane(std::unique_ptr<Lane> lane, std::shared_ptr<Injection> injection)
      : LaneDecorator(std::move(lane)), injection_(std::move(injection)) {}

  void SetWaker(LaneWaker* waker) override {
    waker_ = waker;
    LaneDecorator::SetWaker(waker);
  }

  absl::StatusOr<bool> Send(OutgoingFrame& frame) override {
    const bool is_new = frame.header.kind == FrameKind::kData &&
                        frame.sent_bytes == 0 && !is_counted_;
    if (is_new && injection_->fault != Fault::kFailReceive) {
      is_counted_ = true;
      if (IsDue()) refusals_left_ = 50;
    }
    if (refusals_left_ > 0) {
      const absl::StatusOr<bool> answer = InjectFault(frame);
      if (!answer.ok() || !*answer) return answer;
      is_counted_ = false;
      return true;
    }
    absl::StatusOr<bool> is_sent = LaneDecorator::Send(frame);
    if (is_sent.ok() && *is_sent) is_counted_ = false;
    return is_sent;
  }

  absl::StatusOr<const FrameHeader*> NextFrame() override {
    const absl::StatusOr<const FrameHeader*> header =
        LaneDecorator::NextFrame();
    is_next_data_ = header.ok() && *header != nullptr &&
                    (*header)->kind == FrameKind::kData;
    return header;
  }

  absl::StatusOr<bool> ReceivePayload(PayloadSink& sink) override {
    // A frame may arrive in several pieces, but counts once. Frames that list
    // waiting ranks do not count, because their number depends on timing.
    const bool is_new = !std::exchange(is_receiving_, true) && is_next_data_;
    if (injection_->fault == Fault::kFailReceive && is_new && IsDue()) {
      Close();
      return absl::UnavailableError("the receive was made to fail");
    }
    const absl::StatusOr<bool> is_whole = LaneDecorator::ReceivePayload(sink);
    if (is_whole.ok() && *is_whole) is_receiving_ = false;
    return is_whole;
  }

 private:
  bool IsDue() {
    if (++injection_->passed != injection_->occurrence) return false;
    injection_->was_injected = true;
    return true;
  }

  // Injects the fault. Returns true if the sender is told that the frame was
  // sent.
  absl::StatusOr<bool> InjectFault(OutgoingFrame& frame) {
    if (injection_->fault == Fault::kDelay) {
      --refusals_left_;
      waker_->Wake();
      return false;
    }
    refusals_left_ = 0;
    switch (injection_->fault) {
      case Fault::kFailSend:
        Close();
        return absl::UnavailableError("the send was made to fail");
      case Fault::kDrop:
        return true;
      case Fault::kStale: {
        std::vector<uint8_t> garbage(frame.header.payload_bytes, 0x5a);
        OutgoingFrame stale = frame;
        stale.header.generation = kGeneration - 1;
        stale.payload = garbage.data();
        SendWhole(stale);
        break;
      }
      default: {
        OutgoingFrame twin = frame;
        SendWhole(twin);
      }
    }
    return LaneDecorator::Send(frame);
  }
  // Retries until the frame is sent: a lane holds two frames, and the peer
  // receives one.
  void SendWhole(OutgoingFrame& frame) {
    absl::StatusOr<bool> is_sent = false;
    do {
      is_sent = LaneDecorator::Send(frame);
    } while (is_sent.ok() && !*is_sent);
  }

  const std::shared_ptr<Injection> injection_;
  LaneWaker* waker_ = nullptr;
  bool is_counted_ = false;
  bool is_receiving_ = false;
  bool is_next_data_ = false;
  int refusals_left_ = 0;
};

class LaneFaultTest
    : public testing::TestWithParam<std::tuple<Algorithm, Fault, bool>> {
 protected:
  struct Outcome {
    bool was_injected = false;
    int frame_count = 0;  // Frames counted up to the fault, or all frames.
  };

  // Injects the fault into frame `occurrence` and checks the outcome.
  //
  // Ranks detect a dropped frame only by their timeout. If the machine is so
  // slow that the ranks time out before the fault is injected, the run is
  // repeated with a longer timeout.
  Outcome Run(int occurrence) {
    absl::Duration timeout = std::get<Fault>(GetParam()) == Fault::kDrop
                                 ? absl::Milliseconds(150)
                                 : absl::Seconds(60);
    std::optional<Outcome> outcome;
    while (!(outcome = Run(occurrence, timeout)).has_value()) timeout *= 4;
    return *outcome;
  }

  // As above, with `timeout` for each call. Returns nullopt if it was too
  // short.
  std::optional<Outcome> Run(int occurrence, absl::Duration timeout) {
    const auto& [algorithm, fault, over_sockets] = GetParam();
    auto injection = std::make_shared<Injection>(Injection{fault, occurrence});
    absl::StatusOr<LaneMesh> lanes =
        over_sockets ? MakeRawLanes(RawLaneKind::kUnix, kSize, kGeneration)
                     : MakeMemoryLanes(kSize);
    EXPECT_OK(lanes);
    for (auto& lane : (*lanes)[1]) {
      if (lane != nullptr) {
        lane = std::make_unique<FaultyLane>(std::move(lane), injection);
      }
    }
    const RankGroup group =
        *MakeMessageGroup(*std::move(lanes), kGeneration, Always(algorithm));
    const absl::Time start_time = Clock::Real()->Now();
    int failures = 0;
    const auto statuses = RunRanks(group, [&](Communicator& communicator) {
      return AllReduceOnce(communicator, timeout);
    });
    for (const absl::Status& status : statuses) failures += !status.ok();
    if (!injection->was_injected && failures > 0 &&
        timeout < absl::Seconds(30)) {
      return std::nullopt;
    }
    const bool is_harmless = fault == Fault::kDelay || fault == Fault::kStale;
    if (!injection->was_injected || is_harmless) {
      EXPECT_EQ(failures, 0) << statuses[0] << statuses[1] << statuses[2];
      return Outcome{injection->was_injected, injection->passed};
    }
    for (const absl::Status& status : statuses) {
      if (status.ok()) continue;
      EXPECT_THAT(
          status.message(),
          AllOf(HasSubstr("rank "), HasSubstr("all-reduce of gradients"),
                HasSubstr("collective 1 of generation 5")));
      EXPECT_THAT(status, testing::AnyOf(
                              StatusIs(absl::StatusCode::kUnavailable),
                              StatusIs(absl::StatusCode::kDeadlineExceeded)));
    }
    // A fault in the last frame shows in the next call. A rank that finished
    // its part of that call before learning of the fault fails in the call
    // after it.
    std::vector<absl::Status> next;
    for (int call = 0; call < 2; ++call) {
      next = RunRanks(group, [&](Communicator& communicator) {
        return communicator.Barrier({"next", timeout});
      });
    }
    for (int rank = 0; rank < kSize; ++rank) {
      EXPECT_FALSE(next[rank].ok()) << "rank " << rank;
    }
    // All three calls run into their deadlines if nothing else reveals the
    // fault.
    const absl::Duration limit = fault == Fault::kDrop
                                     ? 3 * timeout + absl::Seconds(10)
                                     : absl::Seconds(20);
    EXPECT_LT(Clock::Real()->Now() - start_time, limit);
    return Outcome{injection->was_injected, injection->passed};
  }

  // If the call succeeds, checks the sum.
  static absl::Status AllReduceOnce(Communicator& communicator,
                                    absl::Duration timeout) {
    Tensor buffer = RankValues(ReduceOp::kSum, DType::kInt32, kElementCount,
                               communicator.rank());
    const absl::Status status = communicator.AllReduce(
        ReduceOp::kSum, SpanOf(buffer), {"gradients", timeout});
    static const Tensor expected =
        ReducedValues(ReduceOp::kSum, DType::kInt32, kElementCount, kSize);
    if (status.ok()) {
      EXPECT_TRUE(BitwiseEqual(buffer, expected));
    }
    return status;
  }
};

TEST_P(LaneFaultTest, EveryFrameInTurn) {
  const int frame_count = Run(/*occurrence=*/0).frame_count;
  // There are two peers, and each part or step has more than one segment.
  ASSERT_GE(frame_count, 4);
  ASSERT_LT(frame_count, 100);
  for (int occurrence = 1; occurrence <= frame_count; ++occurrence) {
    SCOPED_TRACE(absl::StrCat("frame ", occurrence, " of ", frame_count));
    EXPECT_TRUE(Run(occurrence).was_injected);
  }
  EXPECT_FALSE(Run(frame_count + 1).was_injected);
}

std::string NameOf(
    const testing::TestParamInfo<std::tuple<Algorithm, Fault, bool>>& info) {
  const auto& [algorithm, fault, over_sockets] = info.param;
  constexpr const char* kFaults[] = {"FailSend",  "FailReceive", "Drop",
                                     "Duplicate", "Delay",       "Stale"};
  std::string name(AlgorithmName(algorithm));
  std::erase(name, '-');
  return absl::StrCat(name, kFaults[static_cast<int>(fault)],
                      over_sockets ? "Unix" : "Memory");
}

INSTANTIATE_TEST_SUITE_P(
    All, LaneFaultTest,
    testing::Combine(testing::Values(Algorithm::kOneShot, Algorithm::kDirect,
                                     Algorithm::kRing,
                                     Algorithm::kHalvingDoubling),
                     testing::Values(Fault::kFailSend, Fault::kFailReceive,
                                     Fault::kDrop, Fault::kDuplicate,
                                     Fault::kDelay, Fault::kStale),
                     testing::Bool()),
    NameOf);

}  // namespace
}  // namespace muster
