#include "common/net/cluster/tf_config.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

absl::StatusOr<ClusterConfig> Parse(absl::string_view text) {
  return ParseTfConfig(text, "TF_CONFIG");
}

// Returns the error message for an invalid text.
std::string Complaint(absl::string_view text) {
  const absl::StatusOr<ClusterConfig> config = Parse(text);
  EXPECT_THAT(config, StatusIs(absl::StatusCode::kInvalidArgument,
                               StartsWith("TF_CONFIG")))
      << text;
  return std::string(config.status().message());
}

constexpr absl::string_view kTutorial = R"({
  "cluster": {"chief": ["h0:2222"], "worker": ["h1:2222", "h2:2222"],
              "ps": ["h3:2222", "h4:2222"]},
  "task": {"type": "worker", "index": 1}})";

TEST(TfConfigTest, ParsesTheConfigurationsOfTutorials) {
  ASSERT_OK_AND_ASSIGN(const ClusterConfig config, Parse(kTutorial));
  EXPECT_EQ(config.task, (TaskId{TaskType::kWorker, 1}));
  EXPECT_EQ(config.source, "TF_CONFIG");
  EXPECT_EQ(config.cluster.ToString(),
            R"({"chief":["h0:2222"],"worker":["h1:2222","h2:2222"],)"
            R"("ps":["h3:2222","h4:2222"]})");
}

TEST(TfConfigTest, BlankTextMeansAlone) {
  for (absl::string_view text : {"", " \n", "{}", R"({"cluster":{}})"}) {
    ASSERT_OK_AND_ASSIGN(const ClusterConfig config, Parse(text));
    EXPECT_TRUE(config.IsAlone()) << text;
  }
}

TEST(TfConfigTest, AcceptsTheIndexAsAString) {
  ASSERT_OK_AND_ASSIGN(const ClusterConfig config,
                       Parse(R"({"cluster":{"worker":["a:1","b:1"]},)"
                             R"("task":{"type":"worker","index":"1"}})"));
  EXPECT_EQ(config.task.index, 1);
}

TEST(TfConfigTest, AcceptsASparseMap) {
  ASSERT_OK_AND_ASSIGN(
      const ClusterConfig config,
      Parse(R"({"cluster":{"worker":{"3":"w3:1"},"ps":["p0:1"]},)"
            R"("task":{"type":"worker","index":3}})"));
  EXPECT_TRUE(config.cluster.sparse(TaskType::kWorker));
  EXPECT_THAT(config.cluster.Address({TaskType::kWorker, 3}),
              IsOkAndHolds("w3:1"));
}

TEST(TfConfigTest, AcceptsAServerWithoutWorkers) {
  EXPECT_OK(Parse(R"({"cluster":{"worker":{},"ps":{"1":"p1:1"}},)"
                  R"("task":{"type":"ps","index":1}})"));
}

TEST(TfConfigTest, IgnoresUnrelatedKeys) {
  EXPECT_OK(Parse(R"({"cluster":{"worker":["a:1"]},"environment":"cloud",)"
                  R"("job":{"x":[1,{}]},"rpc_layer":"grpc","model_dir":"d",)"
                  R"("task":{"type":"worker","index":0,"trial":"7"}})"));
}

TEST(TfConfigTest, RemovesSchemesAndKeepsIpv6) {
  ASSERT_OK_AND_ASSIGN(
      const ClusterConfig config,
      Parse(R"({"cluster":{"worker":["grpc://a:1","[fd00::1]:2"]},)"
            R"("task":{"type":"worker","index":0}})"));
  EXPECT_EQ(config.cluster.ToString(), R"({"worker":["a:1","[fd00::1]:2"]})");
}

TEST(TfConfigTest, MasterIsTheChief) {
  ASSERT_OK_AND_ASSIGN(
      const ClusterConfig config,
      Parse(R"({"cluster":{"master":["a:1"],"worker":["b:1"]},)"
            R"("task":{"type":"master","index":0}})"));
  EXPECT_EQ(config.task, (TaskId{TaskType::kChief, 0}));
}

TEST(TfConfigTest, EvaluatorNeedsNoCluster) {
  EXPECT_OK(Parse(R"({"task":{"type":"evaluator","index":0}})"));
  EXPECT_OK(Parse(R"({"cluster":{"worker":["a:1"]},)"
                  R"("task":{"type":"evaluator","index":0}})"));
}

TEST(TfConfigTest, RejectsATaskWithoutACluster) {
  EXPECT_THAT(Complaint(R"({"task":{"type":"chief","index":0}})"),
              HasSubstr("has a \"task\" but no \"cluster\""));
}

TEST(TfConfigTest, DetectsTheSameAddressInTwoNotations) {
  EXPECT_THAT(
      Complaint(R"({"cluster":{"worker":["localhost:2222","127.0.0.1:2222"]},)"
                R"("task":{"type":"worker","index":0}})"),
      HasSubstr("a separate address"));
}

TEST(TfConfigTest, ShowsWhereInvalidJsonBreaks) {
  EXPECT_THAT(Complaint(R"({"cluster":{"worker":["a:1",]}})"),
              AllOf(HasSubstr("is not JSON at character"),
                    HasSubstr(R"(after `{"cluster":{"worker":["a:1",`)"),
                    HasSubstr("remove the comma before the \"]\"")));
  EXPECT_THAT(Complaint(R"({"cluster")"), HasSubstr("is not JSON"));
  EXPECT_THAT(Complaint("{cluster:{worker:[a:1]}}"),
              HasSubstr("in single quotes"));
  EXPECT_THAT(Complaint("{'cluster':{}}"),
              HasSubstr("JSON requires double quotes"));
  EXPECT_THAT(Complaint("[]"), HasSubstr("expected an object"));
  EXPECT_THAT(Complaint("\"a\xff\""), HasSubstr("is not JSON"));
}

TEST(TfConfigTest, RejectsDuplicateKeys) {
  EXPECT_THAT(Complaint(R"({"cluster":{"worker":["a:1"],"worker":["b:1"]},)"
                        R"("task":{"type":"worker","index":0}})"),
              HasSubstr("has the key \"worker\" twice"));
}

TEST(TfConfigTest, RejectsMisspeltKeys) {
  EXPECT_THAT(Complaint(R"({"clutser":{"worker":["a:1"]},)"
                        R"("task":{"type":"worker","index":0}})"),
              HasSubstr("\"clutser\"; did you mean \"cluster\"?"));
  EXPECT_THAT(Complaint(R"({"cluster":{"worker":["a:1"]},)"
                        R"("tasks":{"type":"worker","index":0}})"),
              HasSubstr("\"tasks\"; did you mean \"task\"?"));
  EXPECT_THAT(Complaint(R"({"cluster":{"worker":["a:1"]},)"
                        R"("task":{"typ":"worker","index":0}})"),
              HasSubstr("task has the key \"typ\"; did you mean \"type\"?"));
  EXPECT_THAT(Complaint(R"({"cluster":{"worker":["a:1"]},)"
                        R"("task":{"type":"worker","indx":0}})"),
              HasSubstr("task has the key \"indx\"; did you mean \"index\"?"));
}

TEST(TfConfigTest, RejectsWrongTypesOfClusterAndRoles) {
  EXPECT_THAT(Complaint(R"({"cluster":["a:1"]})"),
              HasSubstr("cluster is [\"a:1\"]; write an object"));
  EXPECT_THAT(Complaint(R"({"cluster":{"worker":"a:1"}})"),
              HasSubstr("cluster.worker is \"a:1\"; write a list"));
  EXPECT_THAT(Complaint(R"({"cluster":{"worker":[2222]}})"),
              HasSubstr("cluster.worker[0] is 2222; write the address as"));
  EXPECT_THAT(Complaint(R"({"cluster":{"worker":{"one":"a:1"}}})"),
              HasSubstr("cluster.worker has the key \"one\""));
  EXPECT_THAT(Complaint(R"({"cluster":{"worker":["a"]}})"),
              HasSubstr("cluster.worker[0]: \"a\" has no port"));
}

TEST(TfConfigTest, SuggestsTheNearestRole) {
  EXPECT_THAT(Complaint(R"({"cluster":{"wroker":["a:1"]}})"),
              HasSubstr("did you mean \"worker\"?"));
  EXPECT_THAT(Complaint(R"({"cluster":{"worker":["a:1"]},)"
                        R"("task":{"type":"workers","index":0}})"),
              HasSubstr("task.type: \"workers\" is not a role; did you mean "
                        "\"worker\"?"));
  EXPECT_THAT(Complaint(R"({"cluster":{"chief":["a:1"],"master":["b:1"]}})"),
              HasSubstr("both \"chief\" and \"master\""));
}

TEST(TfConfigTest, TaskMustHaveTypeAndIndex) {
  constexpr absl::string_view kCluster = R"({"cluster":{"worker":["a:1"]})";
  const auto with = [&](absl::string_view task) {
    return Complaint(absl::StrCat(kCluster, task, "}"));
  };
  EXPECT_THAT(with(""), HasSubstr("has a cluster but no \"task\""));
  EXPECT_THAT(with(R"(,"task":"worker")"), HasSubstr("task is \"worker\""));
  EXPECT_THAT(with(R"(,"task":{"index":0})"),
              HasSubstr("task has no \"type\", only \"index\""));
  EXPECT_THAT(with(R"(,"task":{"type":7,"index":0})"),
              HasSubstr("task.type is 7; write the role as a string"));
  EXPECT_THAT(with(R"(,"task":{"type":"worker"})"),
              HasSubstr("task has no \"index\", only \"type\""));
  EXPECT_THAT(with(R"(,"task":{"type":"worker","index":0.5})"),
              HasSubstr("task.index is 0.5; write a whole number"));
  EXPECT_THAT(with(R"(,"task":{"type":"worker","index":"first"})"),
              HasSubstr("task.index is \"first\"; write a whole number"));
  EXPECT_THAT(with(R"(,"task":{"type":"worker","index":true})"),
              HasSubstr("task.index is true; write a whole number"));
  EXPECT_THAT(with(R"(,"task":{"type":"worker","index":99999999999999})"),
              HasSubstr("write a whole number"));
  EXPECT_THAT(with(R"(,"task":{"type":"worker","index":-1})"),
              HasSubstr("task.index is -1; tasks are numbered from 0"));
  EXPECT_THAT(with(R"(,"task":{"type":"worker","index":1})"),
              HasSubstr("did you mean to add \"host:port\" entry 1?"));
  EXPECT_THAT(with(R"(,"task":{"type":"ps","index":0})"),
              HasSubstr("cluster has no ps, only worker"));
}

TEST(TfConfigTest, RejectsOtherRpcLayers) {
  EXPECT_THAT(Complaint(R"({"rpc_layer":"grcp"})"),
              HasSubstr("rpc_layer is \"grcp\"; \"grpc\" is the only one"));
}

TEST(TfConfigTest, RejectsHostileTextInBoundedTime) {
  EXPECT_THAT(Complaint(std::string(2 << 20, ' ') + "1"), HasSubstr("at most"));
  std::string deep = R"({"x":)";
  for (int i = 0; i < 300; ++i) deep += "[";
  for (int i = 0; i < 300; ++i) deep += "]";
  EXPECT_THAT(Complaint(deep + "}"),
              HasSubstr("nested 301 levels deep; expected at most 256"));
  EXPECT_LT(
      Complaint("{\"task\":\"" + std::string(1 << 19, 'x') + "\"}").size(),
      500u);
}

TEST(TfConfigTest, HandlesEveryTruncatedText) {
  for (size_t length = 0; length <= kTutorial.size(); ++length) {
    const absl::StatusOr<ClusterConfig> config =
        Parse(kTutorial.substr(0, length));
    EXPECT_EQ(config.ok(), length == 0 || length == kTutorial.size()) << length;
  }
}

}  // namespace
}  // namespace muster
