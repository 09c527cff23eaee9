#include "coordinator/server_watch.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/task_id.h"
#include "common/net/process/version.h"
#include "common/net/rpc/network.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/parameter_server.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;

ClusterSpec ClusterWithWorker(const std::string& address) {
  return ClusterSpec::FromLists({{TaskType::kChief, {"h0:2222"}},
                                 {TaskType::kWorker, {address}},
                                 {TaskType::kPs, {"h2:2222"}}})
      .value();
}

// Starts one server with cluster `there`, and a watch with cluster `here` and
// `version`. Returns the result of the start-up.
absl::Status Meet(const ClusterSpec& here, const ClusterSpec& there,
                  const std::string& version = std::string(kVersion)) {
  ParameterServer::Options server_options;
  server_options.self = {"ps", 0, 7};
  server_options.address = "127.0.0.1:0";
  server_options.cluster = there;
  const auto server =
      ParameterServer::Start(Network::Grpc(), server_options).value();
  ChannelOptions channel;
  channel.address = server->address();
  channel.peer_task_type = "ps";
  channel.caller = {"chief", 0, 1};
  channel.job_id = "job";
  std::vector<std::unique_ptr<Channel>> channels;
  channels.push_back(Network::Grpc()->Connect(channel));
  MissingTasks missing(here, here.Tasks(TaskType::kPs), Clock::Real());
  ServerWatch::Options options;
  options.cluster = here;
  options.version = version;
  const ServerWatch watch(
      options, std::move(channels), [] {}, &missing, Clock::Real());
  return missing.Await(Clock::Real()->Now() + absl::Minutes(1),
                       [](absl::string_view) {});
}

TEST(ServerWatchTest, AServerOfTheSameClusterConnects) {
  EXPECT_OK(Meet(ClusterWithWorker("h1:2222"), ClusterWithWorker("h1:2222")));
}

TEST(ServerWatchTest, AServerOfAnotherClusterRefusesAndSaysWhereTheyDiffer) {
  EXPECT_THAT(
      Meet(ClusterWithWorker("h1:2222"), ClusterWithWorker("h1:2223")),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("disagree about the cluster: worker is "
                               "[\"h1:2222\"] there and [\"h1:2223\"] here"),
                     HasSubstr("ps 0"))));
}

TEST(ServerWatchTest, AServerOfAnotherVersionRefuses) {
  EXPECT_THAT(
      Meet(ClusterWithWorker("h1:2222"), ClusterWithWorker("h1:2222"), "9.9.9"),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("the coordinator runs Muster 9.9.9 and this "
                               "task Muster 0.1.0"),
                     HasSubstr("ps 0"))));
}

}  // namespace
}  // namespace muster
