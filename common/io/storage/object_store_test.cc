#include "common/io/storage/object_store.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/io/storage/object_disk.h"
#include "common/io/storage/object_url.h"
#include "common/io/storage/testing/s3_server.h"
#include "common/io/storage/testing/tls_files.h"
#include "common/io/storage/testing/tls_proxy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Action = S3Server::Action;

const ObjectUrl kUrl = {.scheme = "s3", .bucket = "bucket", .key = "file"};

absl::Span<const uint8_t> AsBytes(absl::string_view text) {
  return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(text.data()),
                             text.size());
}

ObjectStore::Options OptionsFor(const std::string& endpoint) {
  ObjectStore::Options options;
  options.access = {.endpoint = endpoint,
                    .region = S3Server::kRegion,
                    .access_key_id = S3Server::kAccessKeyId,
                    .secret_access_key = S3Server::kSecretAccessKey};
  return options;
}

class ObjectStoreTlsTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string prefix = absl::StrCat(
        testing::TempDir(), "/",
        testing::UnitTest::GetInstance()->current_test_info()->name());
    ASSERT_OK_AND_ASSIGN(files_, WriteServerTlsFiles(prefix));
    ASSERT_OK_AND_ASSIGN(others_, WriteServerTlsFiles(prefix + "-other"));
    ASSERT_OK_AND_ASSIGN(server_, S3Server::Start());
    int port = 0;
    ASSERT_TRUE(absl::SimpleAtoi(
        server_->endpoint().substr(server_->endpoint().rfind(':') + 1), &port));
    ASSERT_OK_AND_ASSIGN(proxy_, TlsProxy::Start(port, files_.server));
    endpoint_ = absl::StrCat("https://127.0.0.1:", proxy_->port());
  }

  absl::Status WriteWith(const std::string& ca_file,
                         const std::string& endpoint) {
    ObjectStore::Options options = OptionsFor(endpoint);
    options.access.ca_file = ca_file;
    return ObjectStore(options).Write(kUrl, AsBytes("weights"));
  }

  ServerTlsFiles files_;
  ServerTlsFiles others_;
  std::unique_ptr<S3Server> server_;
  std::unique_ptr<TlsProxy> proxy_;
  std::string endpoint_;
};

TEST_F(ObjectStoreTlsTest, AStoreWhoseCaIsNamedIsUsed) {
  ASSERT_OK(WriteWith(files_.ca, endpoint_));
  EXPECT_EQ(server_->Objects()["file"], "weights");
  ObjectStore::Options options = OptionsFor(endpoint_);
  options.access.ca_file = files_.ca;
  std::vector<uint8_t> bytes(7);
  ASSERT_OK(ObjectStore(options).Read(kUrl, 0, absl::MakeSpan(bytes), ""));
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), "weights");
}

TEST_F(ObjectStoreTlsTest, AStoreOfAnotherCaGetsNoRequest) {
  for (const std::string& ca : {others_.ca, std::string()}) {
    EXPECT_THAT(
        WriteWith(ca, endpoint_),
        StatusIs(absl::StatusCode::kFailedPrecondition,
                 AllOf(HasSubstr("s3://bucket/file"), HasSubstr(endpoint_),
                       HasSubstr("certificate"), HasSubstr("AWS_CA_BUNDLE"))));
  }
  EXPECT_EQ(server_->request_count(), 0);
}

TEST_F(ObjectStoreTlsTest, AStoreAtAnotherAddressThanItsCertificateIsRefused) {
  EXPECT_THAT(
      WriteWith(files_.ca,
                absl::StrReplaceAll(endpoint_, {{"127.0.0.1", "localhost"}})),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("localhost")));
  EXPECT_EQ(server_->request_count(), 0);
}

TEST(ObjectStoreStallTest, AStoreThatTricklesHasStalled) {
  ASSERT_OK_AND_ASSIGN(const auto server, S3Server::Start());
  server->Set("file", std::string(1 << 20, 'x'));
  server->set_script([](const S3Server::Request&) { return Action::kTrickle; });
  ObjectStore::Options options = OptionsFor(server->endpoint());
  options.stall_timeout = absl::Seconds(1);
  options.retry_for = absl::ZeroDuration();
  std::vector<uint8_t> bytes(1 << 20);
  EXPECT_THAT(
      ObjectStore(options).Read(kUrl, 0, absl::MakeSpan(bytes), "").status(),
      StatusIs(absl::StatusCode::kDeadlineExceeded,
               AllOf(HasSubstr("s3://bucket/file"),
                     HasSubstr("Less than 16384 bytes/sec"))));
}

TEST(ObjectStoreConcurrencyTest, LargeReadsOfOneObjectRunAtTheSameTime) {
  ASSERT_OK_AND_ASSIGN(const auto server, S3Server::Start());
  server->Set("file", std::string(1 << 20, 'x'));
  const std::map<std::string, std::string> variables = server->Environment();
  ObjectDisk::Options options;
  options.first_block_bytes = 100;
  options.block_bytes = 1000;
  options.store.retry_for = absl::ZeroDuration();
  ObjectDisk disk(
      [&](const char* name) -> const char* {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      options);
  ASSERT_OK_AND_ASSIGN(const auto file, disk.Open("s3://bucket/file"));
  // The server answers no request before all of them have arrived.
  constexpr int kReaders = 4;
  absl::Mutex mutex;
  int request_count = 0;
  server->set_script([&](const S3Server::Request&) {
    absl::MutexLock lock(&mutex);
    ++request_count;
    const auto have_all_arrived = [&] { return request_count >= kReaders; };
    mutex.Await(absl::Condition(&have_all_arrived));
    return Action::kServe;
  });
  std::vector<std::thread> readers;
  for (int i = 0; i < kReaders; ++i) {
    readers.emplace_back([&, i] {
      std::vector<uint8_t> bytes(200 << 10);
      EXPECT_OK(file->ReadAt(1000 + i * (200 << 10), absl::MakeSpan(bytes)));
    });
  }
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace muster
