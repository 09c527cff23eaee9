// Runs every fuzz target over its seeds, the inputs in tests/fuzz/corpus, and a
// fixed number of mutants of both.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/fuzz/fuzz_target.h"

namespace muster {
namespace {

constexpr int kMutantCount = 2000;
constexpr size_t kInsertedBytesMax = 16;

class CorpusTest : public testing::TestWithParam<FuzzTarget> {};

// Returns the inputs that have caused errors before, in the order of their file
// names.
std::vector<std::string> CorpusOf(absl::string_view target) {
  const std::filesystem::path folder =
      absl::StrCat("tests/fuzz/corpus/", target);
  std::vector<std::filesystem::path> paths;
  if (std::filesystem::is_directory(folder)) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> inputs;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file),
                        std::istreambuf_iterator<char>());
  }
  return inputs;
}

// Changes, removes or inserts a few bytes. Values at the limits of integers
// find the most errors.
std::string Mutate(std::string input, std::mt19937_64* random) {
  static constexpr uint8_t kLimits[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
  const int change_count = 1 + static_cast<int>((*random)() % 4);
  for (int i = 0; i < change_count; ++i) {
    const size_t at = input.empty() ? 0 : (*random)() % input.size();
    switch (input.empty() ? 3 : (*random)() % 5) {
      case 0:
        input[at] = static_cast<char>(input[at] ^ (1 << ((*random)() % 8)));
        break;
      case 1:
        input[at] =
            static_cast<char>(kLimits[(*random)() % std::size(kLimits)]);
        break;
      case 2:
        input.resize(at);
        break;
      case 3:
        input.insert(at, 1 + (*random)() % kInsertedBytesMax,
                     static_cast<char>((*random)()));
        break;
      case 4:
        input.erase(at, 1 + (*random)() % kInsertedBytesMax);
        break;
    }
  }
  return input;
}

// A target that accepts none of its seeds does not call its parser.
TEST_P(CorpusTest, AcceptsItsSeeds) {
  const std::vector<std::string> seeds = GetParam().seeds();
  ASSERT_FALSE(seeds.empty());
  for (size_t i = 0; i < seeds.size(); ++i) {
    EXPECT_TRUE(GetParam().run(seeds[i])) << "seed " << i;
  }
}

TEST_P(CorpusTest, SurvivesTheCorpusAndMutants) {
  std::vector<std::string> inputs = GetParam().seeds();
  for (std::string& input : CorpusOf(GetParam().name)) {
    GetParam().run(input);
    inputs.push_back(std::move(input));
  }
  GetParam().run("");
  std::mt19937_64 random(1);
  int refused_count = 0;
  for (int i = 0; i < kMutantCount; ++i) {
    const std::string mutant = Mutate(inputs[i % inputs.size()], &random);
    if (!GetParam().run(mutant)) ++refused_count;
  }
  // Every input is a valid list of text lines.
  if (GetParam().name != "text_lines" && GetParam().name != "abort") {
    EXPECT_GT(refused_count, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(AllTargets, CorpusTest,
                         testing::ValuesIn(FuzzTargets()),
                         [](const auto& param_info) {
                           return std::string(param_info.param.name);
                         });

}  // namespace
}  // namespace muster
