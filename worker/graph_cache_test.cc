#include "worker/graph_cache.h"

#include <string>

#include "common/compute/graph/graph_builder.h"
#include "common/compute/graph/graph_codec.h"
#include "common/compute/graph/op_registry.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/graph.pb.h"
#include "worker/client/step_signature.h"
#include "worker/client/worker_protocol.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GraphCacheTest : public testing::Test {
 protected:
  std::string Serialized(const std::string& name) {
    GraphBuilder builder(&ops_, name);
    builder.AddResult(builder.Parameter("x", {DType::kFloat32, {2}},
                                        ToAttributes({.argument = 0})));
    return EncodeGraph(*std::move(builder).Build()).SerializeAsString();
  }

  OpRegistry ops_;
  GraphCache cache_{&ops_, /*step_count_max=*/2};
};

TEST_F(GraphCacheTest, GraphIsSentOnceAndThenFoundByFingerprint) {
  const std::string graph = Serialized("a");
  const uint64_t fingerprint = GraphFingerprint(graph);
  ASSERT_OK_AND_ASSIGN(const auto first, cache_.Get(fingerprint, graph));
  ASSERT_OK_AND_ASSIGN(const auto again, cache_.Get(fingerprint, ""));
  EXPECT_EQ(first, again);
  EXPECT_THAT(cache_.fingerprints(), ElementsAre(fingerprint));
}

TEST_F(GraphCacheTest, EvictsTheLeastRecentlyUsedStep) {
  const std::string a = Serialized("a");
  const std::string b = Serialized("b");
  const std::string c = Serialized("c");
  ASSERT_OK(cache_.Get(GraphFingerprint(a), a));
  ASSERT_OK(cache_.Get(GraphFingerprint(b), b));
  ASSERT_OK(cache_.Get(GraphFingerprint(a), ""));
  ASSERT_OK(cache_.Get(GraphFingerprint(c), c));
  EXPECT_OK(cache_.Get(GraphFingerprint(a), ""));
  EXPECT_THAT(cache_.Get(GraphFingerprint(b), ""),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(GraphCacheTest, RejectsAGraphWithAnotherFingerprint) {
  const std::string a = Serialized("a");
  EXPECT_THAT(
      cache_.Get(GraphFingerprint(a) + 1, a),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("announced as")));
  const std::string rubbish = "\xff\xff rubbish";
  EXPECT_THAT(cache_.Get(GraphFingerprint(rubbish), rubbish),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(GraphCacheTest, RejectsAGraphThatIsNotAStep) {
  GraphBuilder builder(&ops_, "no_step");
  builder.AddResult(builder.Parameter("x", {DType::kFloat32, {2}}));
  const std::string graph =
      EncodeGraph(*std::move(builder).Build()).SerializeAsString();
  EXPECT_THAT(
      cache_.Get(GraphFingerprint(graph), graph),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("argument")));
}

}  // namespace
}  // namespace muster
