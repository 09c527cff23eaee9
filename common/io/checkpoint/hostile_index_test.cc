#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/bundle_index.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/checkpoint/tensor_slice.h"
#include "common/io/storage/testing/simulated_disk.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/checkpoint.pb.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

// Indexes with valid checksums but hostile contents.
class HostileIndexTest : public testing::Test {
 protected:
  // Applies `change` to the index of one float32[2] "t" with 8 bytes of data,
  // and opens the result.
  absl::Status Open(absl::FunctionRef<void(BundleIndex*)> change) {
    BundleIndex index;
    index.header = MakeBundleHeader(1);
    proto::BundleEntry& entry = index.entries["t"];
    EncodeBundleType({DType::kFloat32, {2}}, &entry);
    entry.set_size(8);
    change(&index);
    EXPECT_OK(WriteBundleIndex(&disk_, "ckpt.index", index.header,
                               index.entries, false));
    disk_.Set("ckpt.data-00000-of-00001", std::string(8, '\0'));
    return TensorBundleReader::Open(&disk_, "ckpt").status();
  }

  SimulatedDisk disk_;
};

TEST_F(HostileIndexTest, Headers) {
  EXPECT_OK(Open([](BundleIndex*) {}));
  EXPECT_THAT(Open([](BundleIndex* index) {
                index->header.set_endianness(proto::BundleHeader::BIG);
              }),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("endian")));
  EXPECT_THAT(Open([](BundleIndex* index) {
                index->header.mutable_version()->set_min_consumer(2);
              }),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("version")));
  for (const int count : {-1, 0, 2000000000}) {
    EXPECT_THAT(
        Open([&](BundleIndex* index) { index->header.set_num_shards(count); }),
        StatusIs(absl::StatusCode::kDataLoss));
  }
}

TEST_F(HostileIndexTest, Places) {
  const auto open_with = [&](int64_t offset, int64_t size, int shard) {
    return Open([&](BundleIndex* index) {
      index->entries["t"].set_offset(offset);
      index->entries["t"].set_size(size);
      index->entries["t"].set_shard_id(shard);
    });
  };
  constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
  EXPECT_THAT(open_with(1, 8, 0), StatusIs(kDataLoss, HasSubstr("offset 1")));
  EXPECT_THAT(open_with(-1, 8, 0), StatusIs(kDataLoss));
  EXPECT_THAT(open_with(kHuge, 8, 0), StatusIs(kDataLoss));
  EXPECT_THAT(open_with(0, 4, 0), StatusIs(kDataLoss, HasSubstr("float32[2]")));
  EXPECT_THAT(open_with(0, -8, 0), StatusIs(kDataLoss));
  EXPECT_THAT(open_with(0, 8, 1), StatusIs(kDataLoss, HasSubstr("\"t\"")));
  EXPECT_THAT(open_with(0, 8, -1), StatusIs(kDataLoss));
  EXPECT_THAT(Open([](BundleIndex* index) {
                index->entries["u"] = index->entries["t"];
              }),
              StatusIs(kDataLoss, HasSubstr("cannot hold")))
      << "two tensors over the same bytes";
}

TEST_F(HostileIndexTest, Types) {
  const auto open_with = [&](int dtype, std::vector<int64_t> dims) {
    return Open([&](BundleIndex* index) {
      proto::BundleEntry& entry = index->entries["t"];
      entry.set_dtype(dtype);
      entry.mutable_shape()->clear_dim();
      for (const int64_t dim : dims) {
        entry.mutable_shape()->add_dim()->set_size(dim);
      }
    });
  };
  constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
  EXPECT_OK(open_with(1, {1, 2}));
  EXPECT_THAT(open_with(1, {-2}), StatusIs(kDataLoss));
  EXPECT_THAT(open_with(1, {kHuge, kHuge}), StatusIs(kDataLoss));
  EXPECT_THAT(open_with(1, {kHuge / 2}), StatusIs(kDataLoss));
  EXPECT_THAT(open_with(7, {kHuge}), StatusIs(kDataLoss));
  EXPECT_THAT(open_with(7, {9}), StatusIs(kDataLoss));
  // Types that Muster does not support fail only when the tensor is read.
  for (const auto& [dtype, dims] :
       {std::pair<int, std::vector<int64_t>>{8, {1}},
        {1, std::vector<int64_t>(9, 1)},
        {-5, {2}},
        {0, {2}}}) {
    ASSERT_OK(open_with(dtype, dims));
    ASSERT_OK_AND_ASSIGN(const auto reader,
                         TensorBundleReader::Open(&disk_, "ckpt"));
    EXPECT_EQ(reader->Find("t")->dtype, DType::kInvalid);
    EXPECT_THAT(reader->Read("t"), StatusIs(absl::StatusCode::kUnimplemented));
  }
}

TEST_F(HostileIndexTest, Slices) {
  constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
  const auto cut = [](BundleIndex* index, int64_t start, int64_t length) {
    proto::BundleEntry& whole = index->entries["t"];
    auto* const extent = whole.add_slices()->add_extent();
    extent->set_start(start);
    extent->set_length(length);
    proto::BundleEntry part;
    EncodeBundleType({DType::kFloat32, {length}}, &part);
    part.set_offset(4 * start);
    part.set_size(4 * length);
    index->entries[SliceKey("t", *whole.slices().rbegin())] = part;
  };
  EXPECT_OK(Open([&](BundleIndex* index) {
    cut(index, 0, 1);
    cut(index, 1, 1);
  }));
  EXPECT_THAT(Open([&](BundleIndex* index) { cut(index, 0, 1); }),
              StatusIs(kDataLoss, HasSubstr("1 of the 2 elements")));
  EXPECT_THAT(Open([&](BundleIndex* index) {
                cut(index, 0, 2);
                cut(index, 1, 1);
              }),
              StatusIs(kDataLoss, HasSubstr("more elements")));
  EXPECT_THAT(Open([&](BundleIndex* index) { cut(index, 0, 3); }),
              StatusIs(kDataLoss, HasSubstr("not within")));
  EXPECT_THAT(Open([&](BundleIndex* index) {
                cut(index, 0, 2);
                index->entries.erase(index->entries.begin());
              }),
              StatusIs(kDataLoss, HasSubstr("missing")));
  EXPECT_THAT(Open([&](BundleIndex* index) {
                for (int i = 0; i < 70000; ++i) {
                  index->entries["t"].add_slices()->add_extent();
                }
              }),
              StatusIs(kDataLoss, HasSubstr("70000 slices")));
}

}  // namespace
}  // namespace muster
