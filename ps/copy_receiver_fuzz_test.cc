// Records of a copy that are damaged or malicious end the copy, and neither the
// process nor its memory.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/testing/await_true.h"
#include "common/core/tensor/tensor.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/message.h"
#include "common/net/rpc/service.h"
#include "gtest/gtest.h"
#include "proto/parameter_server.pb.h"
#include "proto/rpc.pb.h"
#include "proto/server_log.pb.h"
#include "ps/copy_receiver.h"
#include "ps/log/change_recorder.h"
#include "ps/parameter_shard.h"
#include "ps/state_records.h"
#include "ps/testing/shard_call.h"

namespace muster {
namespace {

constexpr uint64_t kStateId = 4711;
constexpr int kRounds = 2000;

Message ToMessage(const proto::ServerLogRecord& record,
                  absl::Span<const absl::Span<const uint8_t>> pieces) {
  Message message{record.SerializeAsString(), {}};
  std::vector<uint8_t> bytes;
  for (const auto& piece : pieces) {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  }
  if (!bytes.empty()) {
    message.tensors.push_back(Tensor::FromSpan<uint8_t>(
        Shape({static_cast<int64_t>(bytes.size())}), bytes));
  }
  return message;
}

// Collects what a source sends.
class MessageRecorder final : public ChangeRecorder {
 public:
  bool is_recording() const override { return true; }
  absl::Status Append(
      proto::ServerLogRecord record,
      absl::Span<const absl::Span<const uint8_t>> pieces) override {
    record.set_number(++number_);
    messages.push_back(ToMessage(record, pieces));
    return absl::OkStatus();
  }
  void RequestSnapshot() override {}
  absl::Status BeginEmpty(uint64_t) override { return absl::OkStatus(); }

  std::vector<Message> messages;

 private:
  int64_t number_ = 0;
};

// Keeps what the receiver tells its source.
class SourceStream final : public Stream {
 public:
  absl::Status Send(const Message& message) override {
    proto::CopyEvent event;
    EXPECT_TRUE(event.ParseFromString(message.body));
    applied_count_ = event.snapshot_record_count();
    return absl::OkStatus();
  }
  void Finish(absl::Status) override { is_finished_ = true; }
  void Cancel() override { is_finished_ = true; }

  // True if the parts of the state were applied, or the copy was given up.
  bool HasSettled(int64_t part_count) const {
    return is_finished_ || applied_count_ >= part_count;
  }

 private:
  std::atomic<int64_t> applied_count_ = 0;
  std::atomic<bool> is_finished_ = false;
};

// Returns the messages of a copy: the state of a shard, and changes after it.
std::vector<Message> ValidCopy() {
  ParameterShard shard({.thread_count = 1});
  EXPECT_OK(shard.Create(Spec("dense", DType::kFloat32, Shape({6, 4}), 0.5))
                .status());
  EXPECT_OK(shard.SetOptimizer(Adam().message()));
  Call call;
  call.Step(1);
  call.Update(0, proto::APPLY_GRADIENT,
              Tensor::Full(DType::kFloat32, Shape({6, 4}), 1));
  EXPECT_OK(call.Run(shard));
  std::vector<Message> messages;
  proto::ServerLogRecord head;
  head.mutable_head()->set_task("ps 0");
  head.mutable_head()->set_state_id(kStateId);
  head.mutable_head()->set_first_number(1);
  messages.push_back(ToMessage(head, {}));
  {
    const auto state =
        shard.FreezeForRecords([](int64_t) { return absl::OkStatus(); });
    EXPECT_OK(state.status());
    EXPECT_OK(
        WriteState(*state, {},
                   [&](const proto::ServerLogRecord& record,
                       absl::Span<const absl::Span<const uint8_t>> pieces) {
                     messages.push_back(ToMessage(record, pieces));
                     return absl::OkStatus();
                   }));
  }
  MessageRecorder recorder;
  shard.SetRecorder(&recorder);
  EXPECT_OK(shard.Create(Spec("count", DType::kInt64, Shape())).status());
  for (uint64_t step = 2; step < 5; ++step) {
    call.request.set_step_id(step);
    EXPECT_OK(call.Run(shard));
  }
  EXPECT_OK(shard.Freeze(7).status());
  EXPECT_OK(shard.RollBack(1, 3));
  shard.SetRecorder(nullptr);
  for (Message& message : recorder.messages) {
    messages.push_back(std::move(message));
  }
  return messages;
}

proto::RequestIdentity Source() {
  proto::RequestIdentity identity;
  identity.set_job_id("job");
  return identity;
}

// Sends the messages and takes over.
absl::Status Receive(const std::vector<Message>& messages) {
  AdmissionCheck admission_check({"ps", 1, 9});
  ParameterShard shard(
      {.thread_count = 1, .memory_bytes_max = size_t{1} << 20});
  CopyReceiver receiver(&admission_check, &shard);
  const auto stream = std::make_shared<SourceStream>();
  const auto observer = receiver.Open(stream);
  int64_t part_count = 0;
  for (const Message& message : messages) {
    proto::ServerLogRecord record;
    if (record.ParseFromString(message.body) && !record.has_head() &&
        record.number() == 0) {
      ++part_count;
    }
    auto received = ReceivedMessage::Parse(EncodeMessage(Source(), message));
    if (received.ok()) observer->OnMessage(*std::move(received));
  }
  // A changed record may begin another copy, whose parts are fewer.
  static_cast<void>(AwaitTrue([&] { return stream->HasSettled(part_count); },
                              absl::Milliseconds(200)));
  const absl::Status taken = receiver.TakeOver(kStateId, 0).status();
  observer->OnDone(absl::OkStatus());
  return taken;
}

TEST(CopyReceiverFuzzTest, AWholeCopyIsTakenOver) {
  EXPECT_OK(Receive(ValidCopy()));
}

TEST(CopyReceiverFuzzTest, ChangedBytesDoNoHarm) {
  RandomStream random(FoldIn(7, "bytes"));
  const std::vector<Message> valid = ValidCopy();
  for (int round = 0; round < kRounds; ++round) {
    std::vector<Message> messages = valid;
    for (uint64_t i = 1 + random.Below(3); i > 0; --i) {
      Message& message = messages[random.Below(messages.size())];
      if (message.body.empty()) continue;
      message.body[random.Below(message.body.size())] =
          static_cast<char>(random.Below(256));
      if (random.Below(8) == 0) message.tensors.clear();
    }
    if (random.Below(8) == 0) {
      messages.erase(messages.begin() + random.Below(messages.size()));
    }
    if (random.Below(8) == 0) {
      std::swap(messages[random.Below(messages.size())], messages.back());
    }
    Receive(messages).IgnoreError();
  }
}

}  // namespace
}  // namespace muster
