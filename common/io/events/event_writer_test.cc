#include "common/io/events/event_writer.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/io/events/summaries.h"
#include "common/io/events/testing/event_file.h"
#include "common/io/records/byte_sink.h"
#include "gtest/gtest.h"
#include "proto/event.pb.h"

namespace muster {
namespace {

// The bytes that TensorBoard's own reader accepts, at 1.7e9 seconds.
constexpr char kFirstRecord[] =
    "1800000000000000a37f4b220900000040fc54d9411a0d"
    "627261696e2e4576656e743a32eced8f9d";

// Accepts `room` bytes and is full afterwards.
class SmallSink final : public ByteSink {
 public:
  SmallSink(std::string path, size_t room)
      : path_(std::move(path)), room_(room) {}

  absl::Status Append(absl::string_view bytes) override {
    if (bytes.size() > room_) {
      room_ = 0;
      return absl::ResourceExhaustedError(
          absl::StrCat("cannot write ", path_, ": No space left on device"));
    }
    room_ -= bytes.size();
    return absl::OkStatus();
  }
  absl::Status Flush() override { return absl::OkStatus(); }
  absl::Status Close() override { return absl::OkStatus(); }

 private:
  const std::string path_;
  size_t room_;
};

class EventWriterTest : public ::testing::Test {
 protected:
  EventWriterTest()
      : folder_(absl::StrCat(
            std::getenv("TEST_TMPDIR"), "/",
            ::testing::UnitTest::GetInstance()->current_test_info()->name())),
        options_({.folder = folder_, .host = "host", .wall_time = [this] {
                    return now_;
                  }}) {}

  const std::string folder_;
  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  EventWriter::Options options_;
};

std::string ReadBytes(const std::string& path) {
  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return content.str();
}

TEST_F(EventWriterTest, BeginsAnotherObjectWhenOneIsFull) {
  std::vector<std::string> paths;
  std::vector<std::unique_ptr<std::string>> contents;
  options_.folder = "s3://bucket/run";
  options_.object_bytes_max = 200;
  options_.create_file = [&](absl::string_view path) {
    paths.emplace_back(path);
    contents.push_back(std::make_unique<std::string>());
    return CreateStringSink(contents.back().get());
  };
  EventWriter writer(options_);
  for (int step = 0; step < 20; ++step) {
    ASSERT_OK(writer.Write(step, {ScalarSummary("loss", 0.5)}));
  }
  ASSERT_GT(paths.size(), 2u);
  for (size_t i = 0; i < paths.size(); ++i) {
    EXPECT_TRUE(absl::StartsWith(paths[i], "s3://bucket/run/events.out."))
        << paths[i];
    EXPECT_NE(paths[i], paths[(i + 1) % paths.size()]);
    EXPECT_LT(contents[i]->size(), 500u);
    EXPECT_TRUE(absl::StrContains(*contents[i], "brain.Event:2"));
  }
  EXPECT_FALSE(std::filesystem::exists("s3:"));
}

TEST_F(EventWriterTest, BeginsWithTheRecordThatNamesTheVersion) {
  EventWriter writer(options_);
  ASSERT_OK(writer.Write(0, {}));
  const std::string hex = absl::BytesToHexString(ReadBytes(writer.path()));
  EXPECT_EQ(hex.substr(0, sizeof(kFirstRecord) - 1), kFirstRecord);
}

TEST_F(EventWriterTest, FileIsNamedAsTensorFlowNamesIt) {
  EventWriter writer(options_);
  ASSERT_OK(writer.Write(0, {}));
  const std::string name =
      std::filesystem::path(writer.path()).filename().string();
  EXPECT_TRUE(absl::StartsWith(name, "events.out.tfevents.1700000000.host."))
      << name;
  EXPECT_TRUE(absl::EndsWith(name, ".v2")) << name;
}

TEST_F(EventWriterTest, ReadersSeeAnEventWhileTheFileIsOpen) {
  EventWriter writer(options_);
  now_ += absl::Milliseconds(250);
  ASSERT_OK(writer.Write(
      7, {ScalarSummary("epoch_loss", 0.5), ScalarSummary("epoch_acc", 1)}));
  const std::vector<proto::Event> events = ReadEventFile(writer.path());
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  EXPECT_EQ(events[1].wall_time(), 1'700'000'000.25);
  EXPECT_EQ(ScalarsOf(events, "epoch_loss"), Scalars({{7, 0.5f}}));
  EXPECT_EQ(ScalarsOf(events, "epoch_acc"), Scalars({{7, 1.0f}}));
}

TEST_F(EventWriterTest, NoFileWithoutEvents) {
  { EventWriter writer(options_); }
  EXPECT_FALSE(std::filesystem::exists(folder_));
}

TEST_F(EventWriterTest, AnotherFileAfterClose) {
  EventWriter writer(options_);
  ASSERT_OK(writer.Write(0, {}));
  const std::string first = writer.path();
  ASSERT_OK(writer.Close());
  ASSERT_OK(writer.Write(1, {}));
  EXPECT_NE(writer.path(), first);
  EXPECT_EQ(ReadEventFile(first).size(), 2u);
}

TEST_F(EventWriterTest, FullDiskIsNamedWithTheFile) {
  options_.create_file = [](absl::string_view path) {
    return std::make_unique<SmallSink>(std::string(path), 100);
  };
  EventWriter writer(options_);
  ASSERT_OK(writer.Write(0, {}));
  const absl::Status status =
      writer.Write(1, {ScalarSummary("epoch_loss", 0.5)});
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(absl::StrContains(status.message(),
                                absl::StrCat(folder_, "/events.out.tfevents.")))
      << status;
}

TEST_F(EventWriterTest, BeginsAnotherFileSomeTimeAfterAnError) {
  int file_count = 0;
  options_.create_file =
      [&file_count](
          absl::string_view path) -> absl::StatusOr<std::unique_ptr<ByteSink>> {
    if (++file_count > 1) return CreateFileSink(path);
    return std::make_unique<SmallSink>(std::string(path), 10);
  };
  EventWriter writer(options_);
  const absl::Status full = writer.Write(0, {});
  EXPECT_FALSE(full.ok());
  now_ += options_.retry_after - absl::Seconds(1);
  EXPECT_EQ(writer.Write(1, {}), full);
  EXPECT_EQ(file_count, 1);

  now_ += absl::Seconds(1);
  ASSERT_OK(writer.Write(2, {ScalarSummary("epoch_loss", 0.5)}));
  EXPECT_EQ(ScalarsOf(ReadEventFile(writer.path()), "epoch_loss"),
            Scalars({{2, 0.5f}}));
}

TEST_F(EventWriterTest, AFileInPlaceOfTheFolderIsNamed) {
  std::ofstream(folder_) << "not a folder";
  const absl::Status status = EventWriter(options_).Write(0, {});
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(absl::StrContains(status.message(), folder_)) << status;
}

}  // namespace
}  // namespace muster
