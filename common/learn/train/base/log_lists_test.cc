#include "common/learn/train/base/log_lists.h"

#include <optional>
#include <string>
#include <vector>

#include "common/learn/train/base/history.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(LogListsTest, NamesOfEntriesAreReadBack) {
  for (const size_t index : {0, 1, 10, 999}) {
    const std::optional<LogEntry> entry =
        ParseLogEntryName(LogEntryName("val_f1_score_1", index));
    ASSERT_TRUE(entry.has_value());
    EXPECT_EQ(entry->metric, "val_f1_score_1");
    EXPECT_EQ(entry->index, index);
  }
  for (const char* name : {"loss", "", "[0]", "a[", "a[]", "a[-1]", "a[01]",
                           "a[1]b", "a[x]", "a[99999999999]", "a]"}) {
    EXPECT_FALSE(ParseLogEntryName(name).has_value()) << name;
  }
}

TEST(LogListsTest, EntriesBecomeListsInTheirOrder) {
  Logs logs = {{"loss", 0.5}, {"only[0]", 7}};
  for (int i = 0; i < 12; ++i) logs[LogEntryName("recall", i)] = i;
  const std::vector<LoggedMetric> metrics = MetricsOf(logs);
  ASSERT_EQ(metrics.size(), 3);
  EXPECT_EQ(metrics[0].name, "loss");
  EXPECT_FALSE(metrics[0].is_list);
  EXPECT_THAT(metrics[0].values, ElementsAre(0.5));
  EXPECT_EQ(metrics[1].name, "only");
  EXPECT_TRUE(metrics[1].is_list);
  EXPECT_THAT(metrics[1].values, ElementsAre(7));
  EXPECT_EQ(metrics[2].name, "recall");
  EXPECT_THAT(metrics[2].values,
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
  EXPECT_THAT(ShownValues(logs), ElementsAre(Pair("loss", 0.5), Pair("only", 7),
                                             Pair("recall", 5.5)));
}

}  // namespace
}  // namespace muster
