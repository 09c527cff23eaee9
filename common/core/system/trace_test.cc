#include "common/core/system/trace.h"

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr int64_t kAll = 1 << 24;

class TraceTest : public testing::Test {
 protected:
  TraceTest() { StartTrace(); }
  ~TraceTest() override { StopTrace(); }
};

TEST_F(TraceTest, RecordsNothingWhileItIsOff) {
  StopTrace();
  { const TraceSpan span("test", "unseen"); }
  StartTrace();
  EXPECT_TRUE(ReadTrace(kAll).events.empty());
}

TEST_F(TraceTest, SpansOfAThreadNest) {
  {
    const TraceSpan outer("test", "outer");
    const TraceSpan inner("test", "inner");
  }
  const TraceRecording recording = ReadTrace(kAll);
  ASSERT_EQ(recording.events.size(), 2);
  const TraceEvent& outer = recording.events[0];
  const TraceEvent& inner = recording.events[1];
  EXPECT_STREQ(outer.name, "outer");
  EXPECT_STREQ(inner.name, "inner");
  EXPECT_EQ(outer.thread, inner.thread);
  EXPECT_LE(outer.start_ns, inner.start_ns);
  EXPECT_GE(outer.start_ns + outer.duration_ns,
            inner.start_ns + inner.duration_ns);
}

TEST_F(TraceTest, ThreadsHaveNumbersAndAreKeptAfterTheirEnd) {
  { const TraceSpan span("test", "main"); }
  std::thread([] { const TraceSpan span("test", "other"); }).join();
  const TraceRecording recording = ReadTrace(kAll);
  ASSERT_EQ(recording.events.size(), 2);
  EXPECT_NE(recording.events[0].thread, recording.events[1].thread);
}

TEST_F(TraceTest, KeepsTheNewestSpans) {
  constexpr int kMore = 10;
  for (int i = 0; i < kTraceEventsPerThread + kMore; ++i) {
    RecordTraceSpan("test", "span", /*start_ns=*/i + 1);
  }
  const TraceRecording recording = ReadTrace(kAll);
  EXPECT_EQ(recording.events.size(), kTraceEventsPerThread);
  EXPECT_EQ(recording.dropped_count, kMore);
  EXPECT_EQ(recording.events.front().start_ns, kMore + 1);
  const TraceRecording few = ReadTrace(3);
  EXPECT_EQ(few.events.size(), 3);
  EXPECT_EQ(few.events.back().start_ns, kTraceEventsPerThread + kMore);
  EXPECT_EQ(few.dropped_count, kMore + kTraceEventsPerThread - 3);
}

TEST_F(TraceTest, MemoryIsBoundedWhateverTheNumberOfThreads) {
  for (int i = 0; i < kTraceThreadsMax + 5; ++i) {
    std::thread([] { const TraceSpan span("test", "span"); }).join();
  }
  const TraceRecording recording = ReadTrace(kAll);
  EXPECT_EQ(recording.events.size(), kTraceThreadsMax);
  EXPECT_EQ(recording.dropped_count, 5);
}

TEST_F(TraceTest, StartForgetsEarlierSpans) {
  { const TraceSpan span("test", "old"); }
  StopTrace();
  StartTrace();
  { const TraceSpan span("test", "new"); }
  const TraceRecording recording = ReadTrace(kAll);
  ASSERT_EQ(recording.events.size(), 1);
  EXPECT_STREQ(recording.events[0].name, "new");
}

TEST(TraceNameTest, ANameIsKeptOnceAndTheirNumberIsBounded) {
  EXPECT_EQ(InternTraceName("MatMul"), InternTraceName(std::string("MatMul")));
  for (int i = 0; i < 10'000; ++i) InternTraceName(absl::StrCat("name ", i));
  EXPECT_STREQ(InternTraceName("one more"), "other");
  EXPECT_STREQ(InternTraceName("MatMul"), "MatMul");
}

}  // namespace
}  // namespace muster
