#include "coordinator/rollback_point.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::ElementsAre;

class RollbackPointsTest : public testing::Test {
 protected:
  void Add(const std::string& prefix) {
    RollbackPoint point;
    point.prefix = prefix;
    points_.Add(std::move(point));
  }

  void DropDeleted() {
    points_.DropDeleted([this](const std::string& prefix) {
      return published_.count(prefix) > 0;
    });
  }

  std::vector<std::string> Prefixes() const {
    std::vector<std::string> prefixes;
    for (const RollbackPoint& point : points_.List()) {
      prefixes.push_back(point.prefix);
    }
    return prefixes;
  }

  RollbackPoints points_;
  std::set<std::string> published_;
};

TEST_F(RollbackPointsTest, APointIsRemovedWithItsCheckpoint) {
  Add("a");
  published_ = {"a"};
  Add("b");
  DropDeleted();
  EXPECT_THAT(Prefixes(), ElementsAre("b", "a", ""));
  published_ = {"b"};
  DropDeleted();
  EXPECT_THAT(Prefixes(), ElementsAre("b", ""));
}

TEST_F(RollbackPointsTest, ACheckpointThatIsNotPublishedYetIsKept) {
  Add("a");
  Add("b");
  DropDeleted();
  DropDeleted();
  EXPECT_THAT(Prefixes(), ElementsAre("b", "a", ""));
}

}  // namespace
}  // namespace muster
