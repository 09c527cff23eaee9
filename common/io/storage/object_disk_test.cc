#include "common/io/storage/object_disk.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/io/storage/testing/s3_server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::_;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::UnorderedElementsAre;
using Action = S3Server::Action;

constexpr size_t kPartBytes = 5 << 20;

absl::Span<const uint8_t> AsBytes(absl::string_view text) {
  return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(text.data()),
                             text.size());
}

// Returns content in which neighboring positions differ.
std::string Content(size_t size) {
  std::string content(size, '\0');
  for (size_t i = 0; i < size; ++i) {
    content[i] = static_cast<char>((i * 2654435761u) >> 13);
  }
  return content;
}

class ObjectDiskTest : public testing::Test {
 protected:
  ObjectDiskTest() { Reset(*S3Server::Start()); }

  void Reset(std::unique_ptr<S3Server> server) {
    server_ = std::move(server);
    variables_ = server_->Environment();
    MakeDisk();
  }

  void MakeDisk() {
    ObjectDisk::Options options;
    options.store.backoff.initial = absl::Milliseconds(1);
    options.store.backoff.maximum = absl::Milliseconds(5);
    options.part_bytes = kPartBytes;
    options.first_block_bytes = 100;
    options.block_bytes = 1000;
    options.store.retry_for = retry_for_;
    disk_ = std::make_unique<ObjectDisk>(
        [this](const char* name) -> const char* {
          const auto found = variables_.find(name);
          return found == variables_.end() ? nullptr : found->second.c_str();
        },
        options);
  }

  absl::Status Write(absl::string_view path, absl::string_view content) {
    ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                     disk_->Create(path));
    // The pieces do not match the parts.
    for (size_t begin = 0; begin < content.size(); begin += 3 << 20) {
      RETURN_IF_ERROR(file->Append(AsBytes(content.substr(begin, 3 << 20))));
    }
    return file->Sync();
  }

  absl::StatusOr<std::string> Read(absl::string_view path) {
    return ReadFile(disk_.get(), path, 1 << 30);
  }

  // Makes the server answer the first `count` requests of a method with
  // `action`.
  void InjectActions(const std::string& method, int count, Action action) {
    server_->set_script([=, left = std::make_shared<std::atomic<int>>(count)](
                            const S3Server::Request& request) {
      return request.method == method && left->fetch_sub(1) > 0
                 ? action
                 : Action::kServe;
    });
  }

  absl::Duration retry_for_ = absl::Seconds(60);
  std::unique_ptr<S3Server> server_;
  std::map<std::string, std::string> variables_;
  std::unique_ptr<ObjectDisk> disk_;
};

TEST_F(ObjectDiskTest, SmallFilesTakeOneRequest) {
  ASSERT_OK(Write("s3://bucket/a/b", "hello"));
  EXPECT_EQ(server_->request_count(), 1);
  EXPECT_THAT(server_->Objects(), ElementsAre(Pair("a/b", "hello")));
  EXPECT_THAT(Read("s3://bucket/a/b"), IsOkAndHolds("hello"));
  EXPECT_EQ(server_->request_count(), 2);
}

TEST_F(ObjectDiskTest, FilesCanBeEmpty) {
  ASSERT_OK(Write("s3://bucket/empty", ""));
  EXPECT_THAT(Read("s3://bucket/empty"), IsOkAndHolds(""));
}

TEST_F(ObjectDiskTest, LargeFilesAreWrittenInParts) {
  for (const size_t size :
       {kPartBytes, kPartBytes + 1, 2 * kPartBytes, 4 * kPartBytes + 12345}) {
    const std::string content = Content(size);
    ASSERT_OK(Write("s3://bucket/large", content));
    EXPECT_EQ(server_->Objects()["large"], content) << size;
    EXPECT_EQ(server_->open_upload_count(), 0);
    ASSERT_OK_AND_ASSIGN(const std::string read, Read("s3://bucket/large"));
    EXPECT_EQ(read, content) << size;
  }
}

TEST_F(ObjectDiskTest, PartsAreSentWithoutAskingForPermission) {
  std::atomic<int> question_count = 0;
  server_->set_script([&](const S3Server::Request& request) {
    question_count += request.expects_continue ? 1 : 0;
    return Action::kServe;
  });
  ASSERT_OK(Write("s3://bucket/large", Content(3 * kPartBytes)));
  EXPECT_EQ(question_count, 0);
}

TEST_F(ObjectDiskTest, ReadsAnyRange) {
  const std::string content = Content(5000);
  server_->Set("file", content);
  ASSERT_OK_AND_ASSIGN(const auto file, disk_->Open("s3://bucket/file"));
  ASSERT_EQ(file->size_bytes(), 5000);
  for (const auto& [offset, size] :
       std::vector<std::pair<int, int>>{{0, 10},
                                        {90, 20},
                                        {4990, 10},
                                        {0, 5000},
                                        {1500, 999},
                                        {99, 1001},
                                        {5000, 0},
                                        {2, 4000}}) {
    std::string part(size, '\0');
    ASSERT_OK(file->ReadAt(
        offset,
        absl::MakeSpan(reinterpret_cast<uint8_t*>(part.data()), part.size())));
    EXPECT_EQ(part, content.substr(offset, size)) << offset;
  }
  uint8_t bytes[10];
  EXPECT_THAT(file->ReadAt(4995, absl::MakeSpan(bytes)),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("s3://bucket/file ends at offset 5000")));
}

TEST_F(ObjectDiskTest, NoticesThatAFileIsReplacedWhileItIsRead) {
  server_->Set("file", Content(5000));
  ASSERT_OK_AND_ASSIGN(const auto file, disk_->Open("s3://bucket/file"));
  server_->Set("file", std::string(5000, 'x'));
  uint8_t bytes[10];
  EXPECT_THAT(file->ReadAt(3000, absl::MakeSpan(bytes)),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("412")));
}

TEST_F(ObjectDiskTest, AFileAppearsWhenItIsComplete) {
  server_->Set("file", "old");
  for (const size_t size : {size_t{10}, 3 * kPartBytes}) {
    ASSERT_OK_AND_ASSIGN(auto file, disk_->Create("s3://bucket/file"));
    ASSERT_OK(file->Append(AsBytes(Content(size))));
    EXPECT_EQ(server_->Objects()["file"], "old");
    file.reset();
    EXPECT_EQ(server_->Objects()["file"], "old");
    EXPECT_EQ(server_->open_upload_count(), 0);
  }
  ASSERT_OK(ReplaceFile(disk_.get(), "s3://bucket/file", "new"));
  EXPECT_THAT(server_->Objects(), ElementsAre(Pair("file", "new")));
}

TEST_F(ObjectDiskTest, ListsAFolderInPages) {
  Reset(*S3Server::Start({.page_keys_max = 2}));
  for (const std::string key : {"run/c", "run/a b+&<%", "run/b/x", "run/b/y",
                                "run/d/e/f", "runs/no", "run", "other"}) {
    server_->Set(key, "x");
  }
  EXPECT_THAT(disk_->List("s3://bucket/run"),
              IsOkAndHolds(ElementsAre("a b+&<%", "b", "c", "d")));
  EXPECT_THAT(disk_->List("s3://bucket/run/"),
              IsOkAndHolds(ElementsAre("a b+&<%", "b", "c", "d")));
  EXPECT_THAT(disk_->List("s3://bucket"),
              IsOkAndHolds(ElementsAre("other", "run", "run", "runs")));
  EXPECT_THAT(disk_->List("s3://bucket/none"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none")));
}

TEST_F(ObjectDiskTest, ListsATreeInPages) {
  Reset(*S3Server::Start({.page_keys_max = 2}));
  for (const std::string key : {"run/c", "run/a b+&<%", "run/b/x", "run/b/",
                                "run/d/e/f", "runs/no", "run", "run/"}) {
    server_->Set(key, "x");
  }
  for (const std::string folder : {"s3://bucket/run", "s3://bucket/run/"}) {
    EXPECT_THAT(
        disk_->ListTree(folder, 6),
        IsOkAndHolds(ElementsAre("a b+&<%", "b/", "b/x", "c", "d/e/f")));
  }
  EXPECT_THAT(disk_->ListTree("s3://bucket/run", 4),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("s3://bucket/run: more than 4 objects")));
  EXPECT_THAT(disk_->ListTree("s3://bucket/none", 4),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none")));
}

TEST_F(ObjectDiskTest, NamesWithSpecialCharactersAreSigned) {
  const std::string path = "s3://bucket/ä (1)+&?#%41='\"~*.x";
  ASSERT_OK(Write(path, "content"));
  EXPECT_THAT(Read(path), IsOkAndHolds("content"));
  ASSERT_OK(disk_->Remove(path));
  EXPECT_THAT(server_->Objects(), UnorderedElementsAre());
}

TEST_F(ObjectDiskTest, RemovingAMissingFileIsNoError) {
  EXPECT_OK(disk_->Remove("s3://bucket/none"));
}

TEST_F(ObjectDiskTest, AMissingFileIsNotFound) {
  EXPECT_THAT(disk_->Open("s3://bucket/none"),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("s3://bucket/none"),
                             HasSubstr(server_->endpoint()),
                             HasSubstr("404 NoSuchKey"))));
  EXPECT_EQ(server_->request_count(), 1);
}

TEST_F(ObjectDiskTest, AMissingBucketIsNotAMissingFile) {
  EXPECT_THAT(disk_->Open("s3://elsewhere/file"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("create the bucket elsewhere")));
}

TEST_F(ObjectDiskTest, SendsTheSessionToken) {
  Reset(*S3Server::Start({.session_token = "of-the-session"}));
  EXPECT_THAT(Write("s3://bucket/file", "x"),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("AWS_SESSION_TOKEN")));
  variables_["AWS_SESSION_TOKEN"] = "of-the-session";
  MakeDisk();
  EXPECT_OK(Write("s3://bucket/file", "x"));
}

TEST_F(ObjectDiskTest, AWrongSecretIsNamedAndNotTriedAgain) {
  variables_["AWS_SECRET_ACCESS_KEY"] = "aWrongSecretKey";
  MakeDisk();
  EXPECT_THAT(Write("s3://bucket/file", "x"),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       AllOf(HasSubstr("403 SignatureDoesNotMatch"),
                             HasSubstr("check AWS_SECRET_ACCESS_KEY"),
                             Not(HasSubstr("aWrongSecretKey")))));
  EXPECT_EQ(server_->request_count(), 1);
  EXPECT_THAT(server_->Objects(), UnorderedElementsAre());
}

TEST_F(ObjectDiskTest, AWrongAccessKeyOrRegionIsNamed) {
  variables_["AWS_REGION"] = "us-east-1";
  MakeDisk();
  EXPECT_THAT(Write("s3://bucket/file", "x"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("AuthorizationHeaderMalformed")));
  variables_["AWS_ACCESS_KEY_ID"] = "AKIDOTHER";
  MakeDisk();
  EXPECT_THAT(Write("s3://bucket/file", "x"),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("check AWS_ACCESS_KEY_ID")));
}

TEST_F(ObjectDiskTest, MissingCredentialsAreNamed) {
  variables_.erase("AWS_SECRET_ACCESS_KEY");
  MakeDisk();
  EXPECT_THAT(disk_->Open("s3://bucket/file"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("not AWS_SECRET_ACCESS_KEY")));
}

struct Disturbance {
  const char* method;
  Action action;

  friend void PrintTo(const Disturbance& disturbance, std::ostream* out) {
    *out << disturbance.method << " " << static_cast<int>(disturbance.action);
  }
};

class DisturbedTest : public ObjectDiskTest,
                      public testing::WithParamInterface<Disturbance> {};

TEST_P(DisturbedTest, RequestsAreRepeated) {
  const std::string content = Content(2 * kPartBytes + 100);
  InjectActions(GetParam().method, 3, GetParam().action);
  ASSERT_OK(Write("s3://bucket/large", content));
  ASSERT_OK(Write("s3://bucket/small", "small"));
  ASSERT_OK_AND_ASSIGN(const std::string read, Read("s3://bucket/large"));
  EXPECT_EQ(read, content);
  EXPECT_THAT(Read("s3://bucket/small"), IsOkAndHolds("small"));
  EXPECT_EQ(server_->Objects()["large"], content);
}

INSTANTIATE_TEST_SUITE_P(
    All, DisturbedTest,
    testing::Values(Disturbance{"PUT", Action::kReportOverload},
                    Disturbance{"PUT", Action::kCutBeforeServing},
                    Disturbance{"PUT", Action::kCutAfterServing},
                    Disturbance{"PUT", Action::kDamageRequestBody},
                    Disturbance{"POST", Action::kReportOverload},
                    Disturbance{"POST", Action::kCutBeforeServing},
                    Disturbance{"POST", Action::kCutAfterServing},
                    Disturbance{"GET", Action::kReportOverload},
                    Disturbance{"GET", Action::kCutBeforeServing}));

TEST_F(ObjectDiskTest, GivesUpAfterADeadline) {
  retry_for_ = absl::Milliseconds(50);
  MakeDisk();
  InjectActions("PUT", 1 << 30, Action::kReportOverload);
  EXPECT_THAT(Write("s3://bucket/file", "x"),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("s3://bucket/file"),
                             HasSubstr("503 SlowDown"))));
  EXPECT_GT(server_->request_count(), 2);
  InjectActions("PUT", 1 << 30, Action::kCutBeforeServing);
  EXPECT_THAT(Write("s3://bucket/file", "x"),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("attempts")));
}

TEST_F(ObjectDiskTest, AFailedPartFailsTheFileAndRemovesItsParts) {
  retry_for_ = absl::Milliseconds(20);
  MakeDisk();
  server_->set_script([](const S3Server::Request& request) {
    const auto part = request.query.find("partNumber");
    return part != request.query.end() && part->second == "2"
               ? Action::kReportOverload
               : Action::kServe;
  });
  EXPECT_THAT(Write("s3://bucket/large", Content(8 * kPartBytes)),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("SlowDown")));
  EXPECT_EQ(server_->open_upload_count(), 0);
  EXPECT_THAT(server_->Objects(), UnorderedElementsAre());
}

TEST_F(ObjectDiskTest, AnUnreachableServerIsNamed) {
  const std::string endpoint = server_->endpoint();
  server_.reset();
  retry_for_ = absl::Milliseconds(20);
  MakeDisk();
  EXPECT_THAT(disk_->Open("s3://bucket/file"),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(endpoint)));
}

TEST_F(ObjectDiskTest, RefusesFoldersAsFiles) {
  for (const std::string path : {"s3://bucket", "s3://bucket/folder/"}) {
    EXPECT_THAT(disk_->Open(path), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("names a folder")));
    EXPECT_THAT(disk_->Create(path),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST_F(ObjectDiskTest, OneOfSeveralCreatesAnObject) {
  ASSERT_OK(disk_->CreateExclusive("s3://bucket/views/2", "worker 1"));
  EXPECT_THAT(disk_->CreateExclusive("s3://bucket/views/2", "worker 2"),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr("s3://bucket/views/2")));
  EXPECT_THAT(disk_->CreateExclusive("s3://bucket/views/2", "worker 12"),
              StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(server_->Objects(), ElementsAre(Pair("views/2", "worker 1")));
}

TEST_F(ObjectDiskTest, AnObjectIsCreatedOnceThoughTheResponseIsLost) {
  for (const Action action : {Action::kCutAfterServing, Action::kReportOverload,
                              Action::kCutBeforeServing}) {
    server_->set_script(nullptr);
    ASSERT_OK(disk_->Remove("s3://bucket/claim"));
    InjectActions("PUT", 2, action);
    EXPECT_OK(disk_->CreateExclusive("s3://bucket/claim", "worker 1"));
    EXPECT_THAT(Read("s3://bucket/claim"), IsOkAndHolds("worker 1"));
  }
}

TEST_F(ObjectDiskTest, AStoreThatIgnoresTheConditionIsRefused) {
  Reset(*S3Server::Start({.has_conditional_writes = false}));
  EXPECT_THAT(disk_->CreateExclusive("s3://bucket/claim", "worker 1"),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr(server_->endpoint()),
                             HasSubstr("ignores If-None-Match"))));
  variables_["GS_ENDPOINT_URL"] = server_->endpoint();
  EXPECT_THAT(disk_->CreateExclusive("gs://bucket/claim", "worker 1"),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("gs://bucket/claim")));
}

TEST_F(ObjectDiskTest, ObjectsDoNotGrow) {
  EXPECT_THAT(disk_->AppendFile("s3://bucket/file"),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr("s3://bucket/file"),
                             HasSubstr("objects cannot grow"))));
}

}  // namespace
}  // namespace muster
