#include "common/learn/nn/preprocessing/vocabulary.h"

#include <cstdint>
#include <fstream>
#include <string>

#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

std::string WriteFile(const std::string& name, const std::string& content) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

// Files as editors of Windows write them.
TEST(VocabularyTest, FilesMayHaveByteOrderMarksAndCarriageReturns) {
  Vocabulary<std::string> words(
      {.vocabulary_file = WriteFile("words.txt", "\xEF\xBB\xBFthe\r\ncat")});
  ASSERT_OK(words.Prepare());
  EXPECT_THAT(words.options().vocabulary, ElementsAre("the", "cat"));
  Vocabulary<int64_t> numbers({.vocabulary_file = WriteFile("numbers.txt",
                                                            "\xEF\xBB\xBF"
                                                            "7\r\n8\r\n")});
  ASSERT_OK(numbers.Prepare());
  EXPECT_THAT(numbers.options().vocabulary, ElementsAre(7, 8));
}

}  // namespace
}  // namespace muster
