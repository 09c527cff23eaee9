#include "ps/client/segment_pool.h"

#include <cstring>
#include <memory>
#include <vector>

#include "common/core/base/random.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr size_t kSizeBytes = 64 << 10;
constexpr size_t kDealtBytes = kSizeBytes - SegmentPool::kHeaderBytes;

std::shared_ptr<Buffer> Memory() { return Buffer::Allocate(kSizeBytes); }
bool AlwaysPages(size_t, size_t) { return true; }

TEST(SegmentPoolTest, BuffersDoNotOverlapAndAreAllReleased) {
  SegmentPool pool(Memory(), AlwaysPages);
  RandomStream random(1);
  struct Held {
    std::shared_ptr<Buffer> buffer;
    uint8_t mark;
  };
  std::vector<Held> held;
  int refused_count = 0;
  for (int round = 0; round < 20000; ++round) {
    if (random.Below(2) == 0 && !held.empty()) {
      const size_t index = random.Below(held.size());
      for (size_t i = 0; i < held[index].buffer->size_bytes(); ++i) {
        ASSERT_EQ(held[index].buffer->data()[i], held[index].mark);
      }
      held.erase(held.begin() + index);
      continue;
    }
    const size_t size_bytes = random.Below(8000);
    std::shared_ptr<Buffer> buffer = pool.Allocate(size_bytes);
    if (buffer == nullptr) {
      ++refused_count;
      continue;
    }
    const uint64_t offset = pool.OffsetOf(buffer->data());
    ASSERT_TRUE(pool.Holds(buffer->data()));
    ASSERT_EQ(offset % SegmentPool::kAlignmentBytes, 0);
    ASSERT_GE(offset, SegmentPool::kHeaderBytes);
    ASSERT_LE(offset + size_bytes, kSizeBytes);
    const auto mark = static_cast<uint8_t>(round);
    std::memset(buffer->data(), mark, size_bytes);
    held.push_back({std::move(buffer), mark});
  }
  EXPECT_GT(refused_count, 0);
  held.clear();
  EXPECT_EQ(pool.used_bytes(), 0);
  // The free ranges were merged.
  EXPECT_NE(pool.Allocate(kDealtBytes), nullptr);
}

TEST(SegmentPoolTest, LowOffsetsAreReusedFirst) {
  SegmentPool pool(Memory(), AlwaysPages);
  std::shared_ptr<Buffer> first = pool.Allocate(1000);
  const uint8_t* const low = first->data();
  const auto second = pool.Allocate(1000);
  first.reset();
  EXPECT_EQ(pool.Allocate(900)->data(), low);
}

TEST(SegmentPoolTest, AnAbandonedBufferIsNotReused) {
  SegmentPool pool(Memory(), AlwaysPages);
  std::shared_ptr<Buffer> buffer = pool.Allocate(1024);
  const uint8_t* const data = buffer->data();
  pool.Abandon(*buffer);
  pool.Abandon(*buffer);
  buffer.reset();
  EXPECT_EQ(pool.abandoned_bytes(), 1024);
  EXPECT_EQ(pool.used_bytes(), 1024);
  const auto other = pool.Allocate(kDealtBytes - 1024);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(other->data(), data + 1024);
  EXPECT_EQ(pool.Allocate(1), nullptr);
}

TEST(SegmentPoolTest, ABufferOutlivesThePool) {
  auto memory = Memory();
  const std::weak_ptr<Buffer> watched = memory;
  auto pool = std::make_unique<SegmentPool>(std::move(memory), AlwaysPages);
  std::shared_ptr<Buffer> buffer = pool->Allocate(100);
  pool.reset();
  std::memset(buffer->data(), 1, 100);
  EXPECT_FALSE(watched.expired());
  buffer.reset();
  EXPECT_TRUE(watched.expired());
}

TEST(SegmentPoolTest, TooLargeSizesAreRefused) {
  SegmentPool pool(Memory(), AlwaysPages);
  EXPECT_EQ(pool.Allocate(kDealtBytes + 1), nullptr);
  EXPECT_EQ(pool.Allocate(~size_t{0}), nullptr);
  EXPECT_NE(pool.Allocate(0), nullptr);
}

TEST(SegmentPoolTest, PagesAreAllocatedBeforeTheyAreUsed) {
  constexpr size_t kLargeBytes = size_t{16} << 20;
  size_t paged_bytes = 0;
  bool has_more = true;
  SegmentPool pool(Buffer::Allocate(kLargeBytes),
                   [&](size_t offset, size_t size_bytes) {
                     EXPECT_EQ(offset, paged_bytes);
                     if (has_more) paged_bytes += size_bytes;
                     return has_more;
                   });
  const auto first = pool.Allocate(size_t{3} << 20);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(paged_bytes, size_t{4} << 20);
  has_more = false;
  EXPECT_NE(pool.Allocate(size_t{512} << 10), nullptr);
  EXPECT_EQ(pool.Allocate(size_t{4} << 20), nullptr);
  EXPECT_EQ(pool.used_bytes(), first->size_bytes());
  has_more = true;
  EXPECT_NE(pool.Allocate(kLargeBytes - first->size_bytes() -
                          SegmentPool::kHeaderBytes),
            nullptr);
  EXPECT_EQ(paged_bytes, kLargeBytes);
}

}  // namespace
}  // namespace muster
