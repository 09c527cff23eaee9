#include "common/io/records/object_sink.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "common/io/records/byte_sink.h"
#include "common/io/storage/disk.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::HasSubstr;

constexpr char kUrl[] = "s3://bucket/log";
constexpr absl::Duration kInterval = absl::Seconds(30);

// Behaves like an object store: a file appears as a whole when it is completed.
class Store final : public Disk {
 public:
  bool CreatesAtomically(absl::string_view) const override { return true; }
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(
      absl::string_view path) override {
    EXPECT_EQ(path, kUrl);
    absl::MutexLock lock(&mutex_);
    if (!error_.ok()) {
      ++upload_count_;
      return error_;
    }
    return std::make_unique<Upload>(this);
  }
  absl::Status CreateExclusive(absl::string_view, absl::string_view) override {
    return absl::UnimplementedError("not created exclusively");
  }
  absl::StatusOr<std::unique_ptr<AppendableFile>> AppendFile(
      absl::string_view) override {
    return absl::UnimplementedError("not appended to");
  }
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(
      absl::string_view) override {
    return absl::UnimplementedError("not read");
  }
  absl::Status Rename(absl::string_view, absl::string_view) override {
    return absl::UnimplementedError("not renamed");
  }
  absl::Status Remove(absl::string_view) override {
    return absl::UnimplementedError("not removed");
  }
  absl::Status MakeFolder(absl::string_view) override {
    return absl::OkStatus();
  }
  absl::Status SyncFolder(absl::string_view) override {
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<std::string>> List(absl::string_view) override {
    return absl::UnimplementedError("not listed");
  }

  void set_error(absl::Status error) {
    absl::MutexLock lock(&mutex_);
    error_ = std::move(error);
  }
  // Blocks until `count` uploads have ended, and returns the object.
  std::string AwaitUploads(int count) {
    absl::MutexLock lock(&mutex_);
    const auto are_over = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return upload_count_ >= count;
    };
    mutex_.Await(absl::Condition(&are_over));
    return object_;
  }
  int upload_count() {
    absl::MutexLock lock(&mutex_);
    return upload_count_;
  }

 private:
  class Upload final : public WritableFile {
   public:
    explicit Upload(Store* store) : store_(store) {}
    absl::Status Append(absl::Span<const uint8_t> bytes) override {
      content_.append(bytes.begin(), bytes.end());
      return absl::OkStatus();
    }
    absl::Status Sync() override {
      absl::MutexLock lock(&store_->mutex_);
      store_->object_ = content_;
      ++store_->upload_count_;
      return absl::OkStatus();
    }
    absl::Status Close() override { return Sync(); }

   private:
    Store* const store_;
    std::string content_;
  };

  absl::Mutex mutex_;
  std::string object_ ABSL_GUARDED_BY(mutex_);
  int upload_count_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
};

// Simulated time that records the deadlines of the sink's waits.
class ObservedClock final : public Clock {
 public:
  absl::Time Now() override { return time_.Now(); }
  bool AwaitWithDeadline(absl::Mutex* mutex, const absl::Condition& condition,
                         absl::Time deadline) override {
    {
      absl::MutexLock lock(&mutex_);
      deadlines_.push_back(deadline);
    }
    return time_.AwaitWithDeadline(mutex, condition, deadline);
  }
  void Advance(absl::Duration duration) { time_.Advance(duration); }

  // Blocks until the sink has begun `count` waits, and returns the deadline of
  // the last of them.
  absl::Time AwaitWait(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto have_begun = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return deadlines_.size() >= count;
    };
    mutex_.Await(absl::Condition(&have_begun));
    return deadlines_[count - 1];
  }

 private:
  SimulatedClock time_;
  absl::Mutex mutex_;
  std::vector<absl::Time> deadlines_ ABSL_GUARDED_BY(mutex_);
};

class ObjectSinkTest : public testing::Test {
 protected:
  std::unique_ptr<ByteSink> Create(std::string content = "") {
    return CreateObjectSink(kUrl, {.content = std::move(content),
                                   .upload_interval = kInterval,
                                   .disk = &store_,
                                   .clock = &clock_});
  }
  static void Write(ByteSink& sink, absl::string_view bytes) {
    ASSERT_OK(sink.Append(bytes));
    ASSERT_OK(sink.Flush());
  }

  Store store_;
  ObservedClock clock_;
};

TEST_F(ObjectSinkTest, UploadsFlushedBytesOncePerInterval) {
  const std::unique_ptr<ByteSink> sink = Create();
  Write(*sink, "a");
  ASSERT_OK(sink->Append("lost if killed"));
  EXPECT_EQ(store_.AwaitUploads(1), "a");
  Write(*sink, ", b");
  EXPECT_EQ(clock_.AwaitWait(2), absl::UnixEpoch() + kInterval);
  clock_.Advance(kInterval / 2);
  Write(*sink, ", c");
  EXPECT_EQ(store_.upload_count(), 1);
  clock_.Advance(kInterval / 2);
  EXPECT_EQ(store_.AwaitUploads(2), "alost if killed, b, c");
  Write(*sink, ", d");
  EXPECT_EQ(clock_.AwaitWait(3), absl::UnixEpoch() + 2 * kInterval);
}

TEST_F(ObjectSinkTest, CloseUploadsTheRestWithoutWaitingForTheInterval) {
  const std::unique_ptr<ByteSink> sink = Create();
  Write(*sink, "a");
  store_.AwaitUploads(1);
  ASSERT_OK(sink->Append("b"));
  EXPECT_OK(sink->Close());
  EXPECT_EQ(store_.AwaitUploads(2), "ab");
  EXPECT_OK(sink->Close());
  EXPECT_EQ(store_.upload_count(), 2);
  EXPECT_THAT(sink->Append("c"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("s3://bucket/log is closed")));
}

TEST_F(ObjectSinkTest, AppendsToAnExistingObject) {
  const std::unique_ptr<ByteSink> sink = Create("old,");
  Write(*sink, "new");
  EXPECT_EQ(store_.AwaitUploads(1), "old,new");
}

TEST_F(ObjectSinkTest, WithoutBytesThereIsNoObject) {
  ASSERT_OK(Create()->Close());
  ASSERT_OK(Create("old")->Close());
  EXPECT_EQ(store_.upload_count(), 0);
}

TEST_F(ObjectSinkTest, AFailedUploadIsTheErrorOfLaterCalls) {
  store_.set_error(absl::PermissionDeniedError("403 AccessDenied"));
  const std::unique_ptr<ByteSink> sink = Create();
  Write(*sink, "a");
  store_.AwaitUploads(1);
  const auto is_denied =
      StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("403"));
  EXPECT_THAT(sink->Close(), is_denied);
  EXPECT_THAT(sink->Append("b"), is_denied);
  EXPECT_THAT(sink->Flush(), is_denied);
  EXPECT_EQ(store_.upload_count(), 1);
}

}  // namespace
}  // namespace muster
