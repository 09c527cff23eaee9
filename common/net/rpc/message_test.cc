#include "common/net/rpc/message.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/rpc.pb.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

std::string Join(const std::vector<MessageSlice>& slices) {
  std::string bytes;
  for (const MessageSlice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.data), slice.size_bytes);
  }
  return bytes;
}

// Returns `bytes` in pieces of at most `piece_bytes`. The first piece begins at
// an odd address.
std::vector<MessageSlice> SplitBytes(const std::string& bytes,
                                     size_t piece_bytes) {
  auto owner = std::make_shared<std::vector<uint8_t>>(bytes.size() + 8);
  uint8_t* data = owner->data() + 1;
  std::memcpy(data, bytes.data(), bytes.size());
  std::vector<MessageSlice> slices;
  for (size_t i = 0; i < bytes.size(); i += piece_bytes) {
    slices.push_back(
        {data + i, std::min(piece_bytes, bytes.size() - i), owner});
  }
  return slices;
}

Message MakeMessage() {
  Tensor large(DType::kFloat32, Shape({50, 61}));
  for (int64_t i = 0; i < large.element_count(); ++i) {
    large.mutable_flat<float>()[i] = static_cast<float>(i);
  }
  return {"body",
          {Tensor::Scalar<uint8_t>(7), large, Tensor::Zeros(DType::kBool, {0}),
           Tensor::FromValues<std::string>({2}, {"", "words"}),
           Tensor::FromValues<double>({2}, {1.5, 2.5})}};
}

proto::RequestIdentity Identity() {
  proto::RequestIdentity identity;
  identity.set_job_id("job");
  identity.set_caller_incarnation(9);
  return identity;
}

TEST(MessageTest, ParsesMessagesSplitAnywhere) {
  const Message sent = MakeMessage();
  const std::string bytes = Join(EncodeMessage(Identity(), sent));
  for (size_t piece_bytes :
       {size_t{1}, size_t{3}, size_t{64}, size_t{1000}, bytes.size()}) {
    ASSERT_OK_AND_ASSIGN(
        const ReceivedMessage received,
        ReceivedMessage::Parse(SplitBytes(bytes, piece_bytes)));
    EXPECT_EQ(received.body(), "body");
    EXPECT_EQ(received.identity().caller_incarnation(), 9);
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> tensors,
                         received.ToTensors());
    ASSERT_EQ(tensors.size(), sent.tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      EXPECT_TRUE(BitwiseEqual(tensors[i], sent.tensors[i])) << i;
    }
  }
}

TEST(MessageTest, LargeTensorsAreNotCopiedOnTheWay) {
  const Message sent = MakeMessage();
  std::vector<MessageSlice> slices = EncodeMessage(Identity(), sent);
  EXPECT_TRUE(
      std::any_of(slices.begin(), slices.end(), [&](const MessageSlice& s) {
        return s.data == sent.tensors[1].raw_data();
      }));
  ASSERT_OK_AND_ASSIGN(const ReceivedMessage received,
                       ReceivedMessage::Parse(std::move(slices)));
  EXPECT_EQ(received.tensors()[1].ToTensor()->raw_data(),
            sent.tensors[1].raw_data());
}

TEST(MessageTest, RunsAreAlignedAndCompleteWhereverTheyBegin) {
  const Message sent = MakeMessage();
  const std::string bytes = Join(EncodeMessage(Identity(), sent));
  std::vector<float> scratch(100);
  for (size_t piece_bytes : {7, 100, 4096, 1 << 20}) {
    ASSERT_OK_AND_ASSIGN(
        const ReceivedMessage received,
        ReceivedMessage::Parse(SplitBytes(bytes, piece_bytes)));
    for (int64_t begin : {0, 1, 999, 3050}) {
      int64_t next = begin;
      received.tensors()[1].VisitRuns(
          begin, 3050, 100, scratch.data(),
          [&](int64_t offset, const void* data, int64_t count) {
            ASSERT_EQ(offset, next);
            ASSERT_EQ(reinterpret_cast<uintptr_t>(data) % sizeof(float), 0);
            for (int64_t i = 0; i < count; ++i, ++next) {
              ASSERT_EQ(static_cast<const float*>(data)[i], next);
            }
          });
      EXPECT_EQ(next, 3050);
    }
  }
}

// Returns the bytes of a message with the head `head`, followed by `tail`.
std::string Forge(const proto::MessageHead& head, const std::string& tail) {
  std::string bytes = "MST1";
  const uint32_t size = static_cast<uint32_t>(head.ByteSizeLong());
  bytes.append(reinterpret_cast<const char*>(&size), sizeof(size));
  return bytes + head.SerializeAsString() + tail;
}

absl::Status ParseStatus(const std::string& bytes) {
  return ReceivedMessage::Parse(SplitBytes(bytes, 16)).status();
}

TEST(MessageTest, WrongSizesAreRejectedBeforeMemoryIsAllocated) {
  const auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(ParseStatus(""), StatusIs(kInvalid, HasSubstr("0 bytes")));
  EXPECT_THAT(ParseStatus("GET / HTTP/1.1"),
              StatusIs(kInvalid, HasSubstr("MST1")));
  EXPECT_THAT(ParseStatus("MST1\xff\xff\xff\xff"),
              StatusIs(kInvalid, HasSubstr("claims 4294967295 bytes")));
  proto::MessageHead head;
  head.add_tensor_dtypes(1);
  EXPECT_THAT(ParseStatus(Forge(head, "")),
              StatusIs(kInvalid, HasSubstr("1 dtypes for 0 ranks")));
  head.add_tensor_ranks(9);
  EXPECT_THAT(ParseStatus(Forge(head, "")),
              StatusIs(kInvalid, HasSubstr("has rank 9")));
  head.set_tensor_ranks(0, 1);
  EXPECT_THAT(ParseStatus(Forge(head, "")),
              StatusIs(kInvalid, HasSubstr("has rank 1")));
  head.add_tensor_dims(int64_t{1} << 61);
  EXPECT_THAT(ParseStatus(Forge(head, std::string(100, 'x'))),
              StatusIs(kInvalid));
  head.set_tensor_dims(0, -5);
  EXPECT_THAT(ParseStatus(Forge(head, "")), StatusIs(kInvalid));
  head.set_tensor_dims(0, 5);
  EXPECT_THAT(ParseStatus(Forge(head, std::string(200, 'x'))),
              StatusIs(kInvalid, HasSubstr("follow the last tensor")));
  head.set_tensor_dtypes(0, 99);
  EXPECT_THAT(ParseStatus(Forge(head, "")),
              StatusIs(kInvalid, HasSubstr("dtype 99")));
  head.set_tensor_dtypes(0, static_cast<int>(DType::kString));
  EXPECT_THAT(ParseStatus(Forge(head, "")),
              StatusIs(kInvalid, HasSubstr("has no size")));
  head.add_string_sizes_bytes(-1);
  EXPECT_THAT(ParseStatus(Forge(head, std::string(100, 'x'))),
              StatusIs(kInvalid));
}

TEST(MessageTest, StringsThatDoNotAddUpAreRefused) {
  proto::MessageHead head;
  head.add_tensor_dtypes(static_cast<int>(DType::kString));
  head.add_tensor_ranks(1);
  head.add_tensor_dims(int64_t{1} << 40);
  head.add_string_sizes_bytes(8);
  const std::string begin = Forge(head, "");
  const std::string padding(-begin.size() % kTensorAlignmentBytes, '\0');
  ASSERT_OK_AND_ASSIGN(
      const ReceivedMessage received,
      ReceivedMessage::Parse(SplitBytes(begin + padding + "12345678", 16)));
  EXPECT_THAT(received.ToTensors(), StatusIs(absl::StatusCode::kInvalidArgument,
                                             HasSubstr("has only 8 bytes")));
}

// Parsing terminates for any bytes, and every accepted message can be read.
TEST(MessageTest, MutatedMessagesAreReadOrRefused) {
  const std::string original = Join(EncodeMessage(Identity(), MakeMessage()));
  RandomStream random(20);
  int refused_count = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = original;
    // Mutates the first 150 bytes, which hold the head.
    for (uint64_t i = 1 + random.Below(4); i > 0; --i) {
      bytes[random.Below(150)] = static_cast<char>(random.Below(256));
    }
    if (random.Below(4) == 0) bytes.resize(random.Below(bytes.size()));
    const auto received = ReceivedMessage::Parse(SplitBytes(bytes, 4096));
    if (!received.ok()) {
      ++refused_count;
      continue;
    }
    for (const ReceivedTensor& tensor : received->tensors()) {
      EXPECT_LE(tensor.size_bytes(), bytes.size());
      tensor.ToTensor().status().IgnoreError();
    }
  }
  EXPECT_GT(refused_count, 1000);
}

}  // namespace
}  // namespace muster
