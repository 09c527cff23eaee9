// Real processes that receive another version of Muster in the messages of
// other tasks: a link changes the version.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/collectives/peers/job_digest.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/peer_group.pb.h"
#include "tests/cluster/cluster_under_test.h"
#include "tests/cluster/faulty_link.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kOtherVersion[] = "9.9.9";

// The maximum time until a refused task has ended. Tasks do not wait for others
// that may not have started.
constexpr absl::Duration kEndMax = absl::Seconds(6);

// The task that receives another version.
struct Listener {
  std::string name;
  TaskId task;
  int ps_count;
  TaskId speaker;
};

class OtherVersionTest : public testing::TestWithParam<Listener> {
 protected:
  // Returns the version of the executable, such as "0.1.0".
  std::string OwnVersion() {
    const auto worker = ProcessUnderTest::Start({"worker/worker", "--version"});
    EXPECT_OK(worker);
    const auto line = (*worker)->AwaitLine("worker ");
    EXPECT_OK(line);
    return std::string(absl::StripPrefix(line.value_or(""), "worker "));
  }

  // Returns the bytes of the fingerprint of a version.
  static std::string Fingerprint(const std::string& version) {
    JobDigest digest;
    digest.Add("version of Muster", version);
    proto::PeerHello hello;
    digest.EncodeTo(&hello);
    const uint64_t fingerprint = hello.digest(0).fingerprint();
    std::string bytes(sizeof(fingerprint), '\0');
    std::memcpy(bytes.data(), &fingerprint, sizeof(fingerprint));
    return bytes;
  }

  void ExpectRefused(ProcessUnderTest& process, const std::string& own,
                     absl::Duration timeout) {
    ASSERT_OK_AND_ASSIGN(const ProcessEnd end, process.AwaitEnd(timeout));
    EXPECT_EQ(end.ShellCode(), 2) << process.output();
    EXPECT_THAT(process.output(), AllOf(HasSubstr(kOtherVersion),
                                        HasSubstr(own), HasSubstr("version")));
  }
};

TEST_P(OtherVersionTest, IsRefusedAndBothVersionsAreNamed) {
  const Listener& listener = GetParam();
  ASSERT_OK_AND_ASSIGN(
      const auto cluster,
      ClusterUnderTest::Create("versions", 2, listener.ps_count));
  ASSERT_OK_AND_ASSIGN(FaultyLink* const link, cluster->Link(listener.task));
  const std::string own = OwnVersion();
  ASSERT_EQ(own.size(), absl::string_view(kOtherVersion).size());
  link->Rewrite(own, kOtherVersion);
  // Synchronous workers compare fingerprints.
  link->Rewrite(Fingerprint(own), Fingerprint(kOtherVersion));
  // All others listen before the speaker starts.
  for (const TaskId& task : cluster->cluster().Members()) {
    if (task == listener.speaker) continue;
    ASSERT_OK(cluster->Start(task));
    ASSERT_OK(cluster->process(task).AwaitLine("incarnation"));
  }
  ASSERT_OK(cluster->Start(listener.speaker));
  ExpectRefused(cluster->process(listener.task), own,
                ProcessUnderTest::kPatience);
  ExpectRefused(cluster->process(listener.speaker), own, kEndMax);
}

INSTANTIATE_TEST_SUITE_P(
    Listeners, OtherVersionTest,
    testing::Values(
        Listener{
            "ParameterServer", {TaskType::kPs, 0}, 2, ClusterUnderTest::kChief},
        Listener{"Worker", {TaskType::kWorker, 0}, 2, ClusterUnderTest::kChief},
        Listener{"SynchronousWorker",
                 {TaskType::kWorker, 1},
                 0,
                 {TaskType::kWorker, 0}}),
    [](const testing::TestParamInfo<Listener>& info) {
      return info.param.name;
    });

}  // namespace
}  // namespace muster
