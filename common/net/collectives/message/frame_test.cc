#include "common/net/collectives/message/frame.h"

#include <string>

#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

FrameHeader SomeHeader() {
  FrameHeader header;
  header.kind = FrameKind::kData;
  header.generation = 0x1122334455667788;
  header.sequence = 7;
  header.signature = {CollectiveOperation::kAllReduce,
                      ReduceOp::kMax,
                      DType::kBfloat16,
                      3,
                      -2,
                      int64_t{1} << 40,
                      0xfedcba9876543210};
  header.step = 0x01020304;
  header.segment = 5;
  header.payload_bytes = uint64_t{1} << 33;
  return header;
}

TEST(FrameTest, HeaderRoundTrips) {
  const FrameHeader header = SomeHeader();
  const EncodedFrameHeader encoded = EncodeFrameHeader(header);
  ASSERT_OK_AND_ASSIGN(const FrameHeader decoded, DecodeFrameHeader(encoded));
  EXPECT_EQ(decoded.kind, header.kind);
  EXPECT_EQ(decoded.generation, header.generation);
  EXPECT_EQ(decoded.sequence, header.sequence);
  EXPECT_EQ(decoded.signature, header.signature);
  EXPECT_EQ(decoded.step, header.step);
  EXPECT_EQ(decoded.segment, header.segment);
  EXPECT_EQ(decoded.payload_bytes, header.payload_bytes);
}

TEST(FrameTest, LayoutIsAsDocumented) {
  const EncodedFrameHeader encoded = EncodeFrameHeader(SomeHeader());
  EXPECT_EQ(std::string(encoded.begin(), encoded.begin() + 4), "MSL1");
  EXPECT_EQ(encoded[4], 1);
  EXPECT_EQ(encoded[8], 0x88);
  EXPECT_EQ(encoded[16], 7);
  EXPECT_EQ(encoded[40], 4);
  EXPECT_EQ(encoded[44], 5);
  EXPECT_EQ(encoded[52], 2);
  EXPECT_EQ(encoded[60], 3);
}

TEST(FrameTest, InvalidHeadersAreRefused) {
  EncodedFrameHeader encoded = EncodeFrameHeader(SomeHeader());
  encoded[0] = 'X';
  EXPECT_THAT(DecodeFrameHeader(encoded),
              StatusIs(absl::StatusCode::kInvalidArgument));
  encoded = EncodeFrameHeader(SomeHeader());
  encoded[4] = 9;
  EXPECT_THAT(DecodeFrameHeader(encoded),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(FrameTest, AnAbortOfUnboundedSizeIsRefused) {
  FrameHeader header = SomeHeader();
  header.kind = FrameKind::kAbort;
  EXPECT_THAT(
      DecodeFrameHeader(EncodeFrameHeader(header)),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("8589934592")));
}

TEST(FrameTest, AbortCarriesItsStatus) {
  const absl::Status status = absl::UnavailableError("rank 3 is gone");
  EXPECT_EQ(DecodeAbort(EncodeAbort(status)), status);
  const absl::Status wordy = absl::AbortedError(std::string(10000, 'x'));
  EXPECT_LE(EncodeAbort(wordy).size(), kAbortPayloadBytesMax);
}

TEST(FrameTest, InvalidAbortIsAnError) {
  EXPECT_THAT(DecodeAbort(""), StatusIs(absl::StatusCode::kUnknown));
  EXPECT_THAT(DecodeAbort(std::string(1, '\0')),
              StatusIs(absl::StatusCode::kUnknown));
  EXPECT_THAT(DecodeAbort("\xff?"), StatusIs(absl::StatusCode::kUnknown));
}

TEST(CallSignatureTest, SaysWhatWasCalled) {
  CallSignature signature;
  signature.operation = CollectiveOperation::kAllReduce;
  signature.dtype = DType::kFloat32;
  signature.element_count = 10;
  EXPECT_EQ(signature.ToString(), "all-reduce (sum) of 10 x float32");
  signature.operation = CollectiveOperation::kBroadcast;
  signature.root = 2;
  EXPECT_EQ(signature.ToString(), "broadcast from rank 2 of 10 x float32");
}

}  // namespace
}  // namespace muster
