#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/bundle_files.h"
#include "common/io/checkpoint/publish_tensor_bundle.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/checkpoint/tensor_bundle_writer.h"
#include "common/io/checkpoint/tensor_slice.h"
#include "common/io/storage/testing/simulated_disk.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr DType kNumbers[] = {DType::kFloat32,  DType::kFloat64, DType::kInt32,
                              DType::kInt64,    DType::kUint8,   DType::kBool,
                              DType::kBfloat16, DType::kFloat16};

// Element i is i, or for bool, true if i is odd.
Tensor Counting(DType dtype, const Shape& shape) {
  Tensor tensor(dtype, shape);
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    VisitNumber(dtype, [&]<typename T>() {
      if constexpr (std::is_same_v<T, bool>) {
        tensor.mutable_flat<T>()[i] = i % 2 == 1;
      } else if constexpr (std::is_arithmetic_v<T>) {
        tensor.mutable_flat<T>()[i] = static_cast<T>(i);
      } else {
        tensor.mutable_flat<T>()[i] = T(static_cast<float>(i));
      }
    });
  }
  return tensor;
}

Tensor Strings(const Shape& shape, std::vector<std::string> values) {
  return Tensor::FromSpan<std::string>(shape, values);
}

class TensorBundleTest : public testing::Test {
 protected:
  std::unique_ptr<TensorBundleWriter> Writer(BundleShard shard = {}) {
    auto writer = TensorBundleWriter::Create(&disk_, "f/ckpt-1", shard);
    EXPECT_OK(writer);
    return *std::move(writer);
  }
  std::unique_ptr<TensorBundleReader> Reader(size_t piece_bytes = 1 << 20) {
    auto reader = TensorBundleReader::Open(&disk_, "f/ckpt-1",
                                           {.piece_bytes = piece_bytes});
    EXPECT_OK(reader);
    return *std::move(reader);
  }
  void Publish(std::unique_ptr<TensorBundleWriter> writer) {
    ASSERT_OK(writer->Finish());
    ASSERT_OK(PublishTensorBundle(&disk_, "f/ckpt-1", 1));
  }
  static void ExpectEqual(const absl::StatusOr<Tensor>& actual,
                          const Tensor& wanted) {
    ASSERT_OK(actual);
    EXPECT_TRUE(BitwiseEqual(*actual, wanted))
        << actual->DebugString() << " is not " << wanted.DebugString();
  }

  SimulatedDisk disk_;
};

TEST_F(TensorBundleTest, RoundTripsEveryDTypeAndShape) {
  auto writer = Writer();
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const DType dtype : kNumbers) {
    for (const Shape& shape :
         {Shape(), Shape({5}), Shape({0, 3}), Shape({2, 3, 4, 1})}) {
      tensors.emplace_back(absl::StrCat(DTypeName(dtype), shape.ToString()),
                           Counting(dtype, shape));
    }
  }
  tensors.emplace_back(
      "strings",
      Strings({2, 2}, {"", "a", std::string(5, '\0'), std::string(300, 'x')}));
  tensors.emplace_back("string", Strings({}, {"scalar"}));
  tensors.emplace_back("no strings", Strings({0}, {}));
  for (const auto& [name, tensor] : tensors) {
    ASSERT_OK(writer->Add(name, tensor));
  }
  Publish(std::move(writer));
  EXPECT_THAT(disk_.Paths(),
              ElementsAre("f/ckpt-1.data-00000-of-00001", "f/ckpt-1.index"));
  for (const size_t piece_bytes : {64, 1 << 20}) {
    const auto reader = Reader(piece_bytes);
    EXPECT_EQ(reader->tensors().size(), tensors.size());
    for (const auto& [name, tensor] : tensors) {
      ExpectEqual(reader->Read(name), tensor);
      EXPECT_EQ(reader->Find(name)->dtype, tensor.dtype());
    }
    EXPECT_OK(reader->Verify());
  }
}

TEST_F(TensorBundleTest, ReadsAnyPartitionFromAnyOther) {
  const Shape full = {9, 4};
  const Tensor table = Counting(DType::kFloat32, full);
  std::vector<std::string> words;
  for (int i = 0; i < 36; ++i) words.push_back(absl::StrCat("w", i));
  const Tensor strings = Strings(full, words);
  for (int shard = 0; shard < 3; ++shard) {
    auto writer = Writer({.index = shard, .count = 3});
    const TensorSlice rows = TensorSlice::Rows(full, 3 * shard, 3 * shard + 3);
    ASSERT_OK(writer->AddSlice("table", full, rows,
                               table.SliceRows(3 * shard, 3 * shard + 3)));
    if (shard < 2) {
      TensorSlice columns = TensorSlice::Whole(full);
      columns.starts[1] = 2 * shard;
      columns.shape.set_dim(1, 2);
      Tensor part(DType::kString, columns.shape);
      for (int i = 0; i < 18; ++i) {
        part.mutable_flat<std::string>()[i] =
            words[i / 2 * 4 + 2 * shard + i % 2];
      }
      ASSERT_OK(writer->AddSlice("strings", full, columns, part));
    }
    ASSERT_OK(writer->Add(absl::StrCat("own_", shard),
                          Tensor::Scalar<int64_t>(shard)));
    ASSERT_OK(writer->Finish());
  }
  ASSERT_OK(PublishTensorBundle(&disk_, "f/ckpt-1", 3));
  for (const size_t piece_bytes : {64, 1 << 20}) {
    const auto reader = Reader(piece_bytes);
    ExpectEqual(reader->Read("table"), table);
    ExpectEqual(reader->Read("strings"), strings);
    EXPECT_EQ(reader->Find("table")->slices.size(), 3u);
    ExpectEqual(reader->Read("own_2"), Tensor::Scalar<int64_t>(2));
    for (int64_t begin = 0; begin <= 9; ++begin) {
      for (int64_t end = begin; end <= 9; ++end) {
        const TensorSlice rows = TensorSlice::Rows(full, begin, end);
        ExpectEqual(reader->ReadSlice("table", rows),
                    table.SliceRows(begin, end));
        Tensor in_pieces(DType::kFloat32, rows.shape);
        ASSERT_OK(reader->ReadPieces(
            "table", rows,
            [&](int64_t offset, absl::Span<const uint8_t> bytes) {
              std::copy(bytes.begin(), bytes.end(),
                        in_pieces.mutable_raw_data() + offset);
              return absl::OkStatus();
            }));
        ExpectEqual(in_pieces, table.SliceRows(begin, end));
      }
    }
    TensorSlice block = TensorSlice::Whole(full);
    block.starts = {2, 1};
    block.shape = {5, 2};
    const auto floats = reader->ReadSlice("table", block);
    const auto names = reader->ReadSlice("strings", block);
    ASSERT_OK(floats);
    ASSERT_OK(names);
    for (int i = 0; i < 10; ++i) {
      const int at = (2 + i / 2) * 4 + 1 + i % 2;
      EXPECT_EQ(floats->flat<float>()[i], at);
      EXPECT_EQ(names->flat<std::string>()[i], words[at]);
    }
  }
}

TEST_F(TensorBundleTest, WritesTensorsInPieces) {
  const Tensor table = Counting(DType::kFloat64, {1000, 3});
  auto writer = Writer();
  ASSERT_OK(writer->BeginTensor("table", table.type(),
                                TensorSlice::Whole(table.shape())));
  absl::Span<const uint8_t> rest(table.raw_data(), table.size_bytes());
  for (size_t size = 0; !rest.empty(); ++size) {
    ASSERT_OK(writer->AppendBytes(rest.subspan(0, size)));
    rest.remove_prefix(std::min(size, rest.size()));
  }
  ASSERT_OK(writer->EndTensor());
  Publish(std::move(writer));
  ExpectEqual(Reader()->Read("table"), table);
}

TEST_F(TensorBundleTest, RejectsInvalidTensors) {
  constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;
  auto writer = Writer();
  const Shape full = {4, 2};
  const Tensor rows = Counting(DType::kInt32, {2, 2});
  const TensorSlice first = TensorSlice::Rows(full, 0, 2);
  ASSERT_OK(writer->AddSlice("t", full, first, rows));
  ASSERT_OK(writer->Add("u", rows));
  EXPECT_THAT(writer->Add("", rows), StatusIs(kInvalidArgument));
  EXPECT_THAT(writer->Add(absl::string_view("\0a", 2), rows),
              StatusIs(kInvalidArgument, HasSubstr("\\x00")));
  EXPECT_THAT(writer->Add("v", Tensor()), StatusIs(kInvalidArgument));
  EXPECT_THAT(writer->Add("u", rows),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("u")));
  EXPECT_THAT(writer->Add("t", rows),
              StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(writer->AddSlice("t", full, first, rows),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("0,2:0,2")));
  EXPECT_THAT(writer->AddSlice("t", {6, 2}, first, rows),
              StatusIs(kInvalidArgument, HasSubstr("another type")));
  EXPECT_THAT(writer->AddSlice("t", full, TensorSlice::Rows(full, 3, 5), rows),
              StatusIs(kInvalidArgument, HasSubstr("not within [4,2]")));
  EXPECT_THAT(writer->AddSlice("t", full, TensorSlice::Rows(full, 0, 1), rows),
              StatusIs(kInvalidArgument, HasSubstr("int32[2,2]")));
  EXPECT_THAT(
      writer->BeginTensor("s", {DType::kString, {}}, TensorSlice::Whole({})),
      StatusIs(kInvalidArgument, HasSubstr("in pieces")));
  EXPECT_THAT(TensorBundleWriter::Create(&disk_, "f/"),
              StatusIs(kInvalidArgument, HasSubstr("names a folder")));
  EXPECT_THAT(
      TensorBundleWriter::Create(&disk_, "f/x", {.index = 2, .count = 2}),
      StatusIs(kInvalidArgument, HasSubstr("shard 2 of 2")));
}

TEST_F(TensorBundleTest, WrongNumberOfBytesFailsTheShard) {
  for (const size_t size : {15, 17}) {
    auto writer = Writer();
    ASSERT_OK(writer->BeginTensor("t", {DType::kFloat32, {4}},
                                  TensorSlice::Whole({4})));
    const std::vector<uint8_t> bytes(size);
    absl::Status status = writer->AppendBytes(bytes);
    if (status.ok()) status = writer->EndTensor();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_EQ(writer->Finish(), status);
    writer.reset();
    EXPECT_THAT(disk_.Paths(), ElementsAre());
  }
}

TEST_F(TensorBundleTest, NamesMissingTensors) {
  auto writer = Writer();
  ASSERT_OK(writer->Add("dense/kernel", Counting(DType::kFloat32, {2, 2})));
  ASSERT_OK(writer->Add("words", Strings({1}, {"a"})));
  Publish(std::move(writer));
  const auto reader = Reader();
  EXPECT_THAT(reader->Read("dense/kernal"),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("did you mean \"dense/kernel\"")));
  EXPECT_EQ(reader->Find("dense"), nullptr);
  EXPECT_THAT(
      reader->ReadSlice("dense/kernel", TensorSlice::Rows({4, 2}, 1, 3)),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("not within [2,2]")));
  EXPECT_THAT(reader->ReadPieces("words", TensorSlice::Whole({1}),
                                 [](int64_t, absl::Span<const uint8_t>) {
                                   return absl::OkStatus();
                                 }),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(
      TensorBundleReader::Open(&disk_, "f/ckpt-2"),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("f/ckpt-2.index")));
}

TEST_F(TensorBundleTest, RejectsInconsistentShards) {
  const Shape full = {4};
  const Tensor half = Counting(DType::kInt32, {2});
  const auto publish = [&](absl::string_view name_0, const TensorSlice& slice_0,
                           absl::string_view name_1, const TensorSlice& slice_1,
                           const Shape& full_1) {
    auto writer_0 = Writer({.index = 0, .count = 2});
    EXPECT_OK(writer_0->AddSlice(name_0, full, slice_0, half));
    EXPECT_OK(writer_0->Finish());
    auto writer_1 = Writer({.index = 1, .count = 2});
    EXPECT_OK(writer_1->AddSlice(name_1, full_1, slice_1, half));
    EXPECT_OK(writer_1->Finish());
    const absl::Status status = PublishTensorBundle(&disk_, "f/ckpt-1", 2);
    if (!status.ok()) {
      EXPECT_THAT(disk_.Paths(), ElementsAre());
    }
    return status;
  };
  const TensorSlice first = TensorSlice::Rows(full, 0, 2);
  const TensorSlice last = TensorSlice::Rows(full, 2, 4);
  EXPECT_THAT(publish("t", first, "t", first, full),
              StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(publish("t", first, "u", last, full),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("t: its 1 slices hold 2 of the 4")));
  EXPECT_THAT(publish("t", first, "t", last, {5}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("shard 1 holds slices of another type")));
  EXPECT_THAT(
      publish("t", first, "t", TensorSlice::Rows(full, 1, 3), full),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("overlap")));
  EXPECT_OK(publish("t", first, "t", last, full));
}

TEST_F(TensorBundleTest, NamesAMissingShard) {
  ASSERT_OK(Writer({.index = 0, .count = 2})->Finish());
  EXPECT_THAT(PublishTensorBundle(&disk_, "f/ckpt-1", 2),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("f/ckpt-1.part-00001-of-00002.index")));
}

TEST_F(TensorBundleTest, ReplacesACheckpoint) {
  for (int value = 0; value < 4; ++value) {
    auto writer = Writer();
    ASSERT_OK(writer->Add("t", Tensor::Scalar<int32_t>(value)));
    Publish(std::move(writer));
    ExpectEqual(Reader()->Read("t"), Tensor::Scalar<int32_t>(value));
    EXPECT_EQ(disk_.Paths().size(), value % 2 == 0 ? 2u : 3u);
  }
}

TEST_F(TensorBundleTest, FailedWriteLeavesNoFiles) {
  disk_.set_capacity_bytes(100);
  {
    auto writer = Writer();
    ASSERT_OK(writer->Add("t", Counting(DType::kFloat64, {100})));
    EXPECT_THAT(writer->Finish(),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         HasSubstr("ckpt-1.part-00000-of-00001.data")));
    EXPECT_THAT(writer->Finish(),
                StatusIs(absl::StatusCode::kResourceExhausted));
  }
  EXPECT_THAT(disk_.Paths(), ElementsAre());
}

}  // namespace
}  // namespace muster
