#include <algorithm>
#include <cstdint>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/publish_tensor_bundle.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/checkpoint/tensor_bundle_writer.h"
#include "common/io/checkpoint/tensor_slice.h"
#include "common/io/storage/testing/simulated_disk.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using Files = std::map<std::string, std::string>;

// Two shards with every kind of entry.
Files WriteGoodCheckpoint(float offset) {
  SimulatedDisk disk;
  const Shape full = {8, 3};
  for (int shard = 0; shard < 2; ++shard) {
    auto writer = *TensorBundleWriter::Create(&disk, "ckpt",
                                              {.index = shard, .count = 2});
    Tensor half = Tensor::Full(DType::kFloat32, {4, 3}, shard + offset);
    EXPECT_OK(writer->AddSlice(
        "table", full, TensorSlice::Rows(full, 4 * shard, 4 * shard + 4),
        half));
    for (int i = 0; i < 20; ++i) {
      EXPECT_OK(writer->Add(absl::StrCat("layer_", shard, "/weight_", i),
                            Tensor::Full(DType::kBfloat16, {i, 2}, i)));
    }
    EXPECT_OK(writer->Add(absl::StrCat("words_", shard),
                          Tensor::FromValues<std::string>(
                              {3}, {"", "some", std::string(40, 'w')})));
    EXPECT_OK(writer->Add(absl::StrCat("flags_", shard),
                          Tensor::FromValues<bool>({2}, {true, false})));
    EXPECT_OK(writer->Finish());
  }
  EXPECT_OK(PublishTensorBundle(&disk, "ckpt", 2));
  Files files;
  for (const std::string& path : disk.Paths()) files[path] = disk.Get(path);
  return files;
}

using Tensors = std::map<std::string, Tensor>;

absl::StatusOr<Tensors> ReadAll(const Files& files) {
  SimulatedDisk disk;
  for (const auto& [path, content] : files) disk.Set(path, content);
  auto reader = TensorBundleReader::Open(&disk, "ckpt", {.piece_bytes = 64});
  if (!reader.ok()) return reader.status();
  const absl::Status verified = (*reader)->Verify();
  Tensors tensors;
  absl::Status first_error;
  for (const StoredTensor& stored : (*reader)->tensors()) {
    absl::StatusOr<Tensor> tensor = (*reader)->Read(stored.name);
    if (!tensor.ok()) {
      first_error.Update(tensor.status());
      continue;
    }
    tensors[stored.name] = *std::move(tensor);
  }
  EXPECT_EQ(verified.ok(), first_error.ok());
  if (!first_error.ok()) return first_error;
  return tensors;
}

// Changes one file in one place.
void Mutate(std::mt19937_64* random, const Files& other, Files* files) {
  auto file = files->begin();
  std::advance(file, (*random)() % files->size());
  std::string& content = file->second;
  const std::string before = content;
  const auto position = [&] { return (*random)() % content.size(); };
  while (content == before) {
    switch ((*random)() % 9) {
      case 0:
        content[position()] ^= static_cast<char>(1 << ((*random)() % 8));
        break;
      case 1:
        content[position()] = static_cast<char>((*random)());
        break;
      case 2:
        content.resize(position());
        break;
      case 3:
        content.append((*random)() % 100 + 1, static_cast<char>((*random)()));
        break;
      case 4:
        content.erase(position(), (*random)() % 20 + 1);
        break;
      case 5:
        content.insert(position(), (*random)() % 20 + 1, '\0');
        break;
      case 6: {  // A sector that was not written.
        const size_t begin = position() / 64 * 64;
        content.replace(begin, 64, std::min<size_t>(64, content.size() - begin),
                        '\0');
        break;
      }
      case 7: {  // Two swapped bytes.
        std::swap(content[position()], content[position()]);
        break;
      }
      case 8:  // The file of another save.
        content = other.at(file->first);
        break;
    }
    if (content.empty()) return;
  }
}

TEST(CorruptionTest, RejectsEveryMutant) {
  const Files good = WriteGoodCheckpoint(0.5f);
  const Files other = WriteGoodCheckpoint(0.25f);
  ASSERT_EQ(good.size(), 3u);
  ASSERT_OK_AND_ASSIGN(const Tensors tensors, ReadAll(good));
  EXPECT_EQ(tensors.size(), 45u);
  constexpr int kMutantCount = 20000;
  std::mt19937_64 random(7);
  std::map<absl::StatusCode, int> codes;
  for (int i = 0; i < kMutantCount; ++i) {
    Files mutant = good;
    Mutate(&random, other, &mutant);
    const absl::StatusOr<Tensors> read = ReadAll(mutant);
    ++codes[read.status().code()];
    ASSERT_FALSE(read.ok()) << "mutant " << i << " was accepted";
    EXPECT_THAT(read.status().message(), testing::HasSubstr("ckpt."));
  }
  for (const auto& [code, count] : codes) {
    std::cout << absl::StatusCodeToString(code) << ": " << count << "\n";
  }
}

TEST(CorruptionTest, DetectsAChangeOfEveryByte) {
  const Files good = WriteGoodCheckpoint(0.5f);
  for (const auto& [path, content] : good) {
    for (size_t at = 0; at < content.size(); ++at) {
      Files mutant = good;
      mutant[path][at] ^= static_cast<char>(1 << (at % 8));
      EXPECT_THAT(ReadAll(mutant), StatusIs(absl::StatusCode::kDataLoss))
          << path << " " << at;
      mutant[path] = content.substr(0, at);
      EXPECT_THAT(ReadAll(mutant), StatusIs(absl::StatusCode::kDataLoss))
          << path << " truncated at " << at;
    }
    Files mutant = good;
    mutant.erase(path);
    EXPECT_THAT(ReadAll(mutant), StatusIs(absl::StatusCode::kNotFound,
                                          testing::HasSubstr(path)));
  }
}

}  // namespace
}  // namespace muster
