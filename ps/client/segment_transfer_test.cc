#include "ps/client/segment_transfer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/string_view.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/client/client_segment.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr size_t kSizeBytes = 1 << 20;

absl::Time Soon() { return Clock::Real()->Now() + absl::Seconds(30); }

class SegmentTransferTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(segment_, ClientSegment::Create(kSizeBytes));
    ASSERT_OK_AND_ASSIGN(hand_out_, FileServer::Open(&segment_->file()));
    server_ = std::thread([this] { hand_out_->Serve(Soon()); });
  }
  void TearDown() override {
    hand_out_->Stop();
    server_.join();
  }

  std::unique_ptr<ClientSegment> segment_;
  std::unique_ptr<FileServer> hand_out_;
  std::thread server_;
};

TEST_F(SegmentTransferTest, TheTokenGivesAccessToTheFile) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK_AND_ASSIGN(
        const FileDescriptor file,
        FetchFile(hand_out_->endpoint(), hand_out_->token(), Soon()));
    ASSERT_OK_AND_ASSIGN(const auto memory, MapClientSegment(file, kSizeBytes));
    memory->data()[kSizeBytes - 1] = static_cast<uint8_t>(i + 1);
    EXPECT_EQ(segment_->memory()->data()[kSizeBytes - 1], i + 1);
  }
}

TEST_F(SegmentTransferTest, AnotherTokenGivesNoAccess) {
  std::string token = hand_out_->token();
  token[31] ^= 1;
  EXPECT_THAT(FetchFile(hand_out_->endpoint(), token, Soon()),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(FetchFile(hand_out_->endpoint(), "short", Soon()),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_OK(
      FetchFile(hand_out_->endpoint(), hand_out_->token(), Soon()).status());
}

TEST_F(SegmentTransferTest, ASilentClientDoesNotDelayOthers) {
  ASSERT_OK_AND_ASSIGN(const sockaddr_un address,
                       LocalEndpoint::SocketAddress(hand_out_->endpoint()));
  const FileDescriptor silent(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(silent.get(), reinterpret_cast<const sockaddr*>(&address),
                    sizeof(address)),
            0);
  EXPECT_OK(
      FetchFile(hand_out_->endpoint(), hand_out_->token(), Soon()).status());
}

TEST_F(SegmentTransferTest, EndpointsElsewhereAreNotTried) {
  const std::string& endpoint = hand_out_->endpoint();
  EXPECT_THAT(FetchFile("0" + endpoint, hand_out_->token(), Soon()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("another host")));
  EXPECT_THAT(FetchFile("", hand_out_->token(), Soon()),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(FetchFile(endpoint + "0", hand_out_->token(), Soon()),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(SegmentTransferTest, APartsPagesAreTakenOnce) {
  EXPECT_TRUE(segment_->TakePages(0, kSizeBytes));
  EXPECT_TRUE(segment_->TakePages(4096, 4096));
}

FileDescriptor MemoryFile(int seals) {
  FileDescriptor file(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(ftruncate(file.get(), kSizeBytes), 0);
  EXPECT_EQ(fcntl(file.get(), F_ADD_SEALS, seals), 0);
  return file;
}

// An access beyond the end of a shrunk file kills the process.
TEST(ClientSegmentTest, AFileThatCanShrinkIsNotMapped) {
  const auto is_no_segment =
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("is not memory of a fixed size"));
  EXPECT_THAT(MapClientSegment(MemoryFile(F_SEAL_GROW), kSizeBytes),
              is_no_segment);
  EXPECT_THAT(
      MapClientSegment(MemoryFile(F_SEAL_SHRINK | F_SEAL_WRITE), kSizeBytes),
      is_no_segment);
  EXPECT_OK(MapClientSegment(MemoryFile(F_SEAL_SHRINK), kSizeBytes).status());
  EXPECT_THAT(MapClientSegment(
                  FileDescriptor(open("/proc/self/exe", O_RDONLY | O_CLOEXEC)),
                  kSizeBytes),
              is_no_segment);
  EXPECT_THAT(MapClientSegment(FileDescriptor(), kSizeBytes), is_no_segment);
}

TEST(ClientSegmentTest, AFileThatIsTooLargeIsNotMapped) {
  EXPECT_THAT(MapClientSegment(MemoryFile(F_SEAL_SHRINK), kSizeBytes - 1),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("1048576 bytes was offered")));
}

TEST(ClientSegmentTest, ASegmentKeepsItsSize) {
  ASSERT_OK_AND_ASSIGN(const auto segment, ClientSegment::Create(kSizeBytes));
  EXPECT_NE(ftruncate(segment->file().get(), 0), 0);
  EXPECT_NE(ftruncate(segment->file().get(), 2 * kSizeBytes), 0);
}

}  // namespace
}  // namespace muster
