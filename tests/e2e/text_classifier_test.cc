// A job whose examples are lists of strings of different lengths is trained in
// one process, with parameter servers and in sync.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/io/records/example.h"
#include "common/io/records/record_writer.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/example.pb.h"
#include "tests/cluster/process_under_test.h"

namespace muster {
namespace {

constexpr char kJob[] = "examples/text_classifier/text_classifier.job";

// Returns neutral words around one word with an opinion, which "not" may
// precede.
std::vector<std::string> Sentence(RandomStream* random, bool* praises) {
  const std::vector<std::string> kOpinions = {"good", "great", "bad", "awful"};
  const auto add_fillers = [&](std::vector<std::string>* words) {
    for (uint64_t i = random->Below(10); i > 0; --i) {
      words->push_back(absl::StrCat("word", random->Below(20)));
    }
  };
  std::vector<std::string> words;
  add_fillers(&words);
  const bool is_negated = random->Below(2) == 1;
  const uint64_t opinion = random->Below(kOpinions.size());
  if (is_negated) words.push_back("not");
  words.push_back(kOpinions[opinion]);
  add_fillers(&words);
  *praises = (opinion < 2) != is_negated;
  return words;
}

void WriteSentences(const std::string& path, uint64_t key, int count) {
  RandomStream random(key);
  ASSERT_OK_AND_ASSIGN(const auto writer, RecordWriter::Create(path));
  for (int i = 0; i < count; ++i) {
    bool praises = false;
    const std::vector<std::string> words = Sentence(&random, &praises);
    proto::Example example;
    auto& features = *example.mutable_features()->mutable_feature();
    features["words"] = BytesFeature(words);
    features["praises"] = Int64Feature({praises});
    ASSERT_OK(writer->Write(SerializeExample(example)));
  }
  ASSERT_OK(writer->Close());
}

class TextClassifierTest : public ::testing::Test {
 protected:
  TextClassifierTest()
      : folder_(absl::StrCat(
            testing::TempDir(), "/",
            testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::create_directories(folder_);
    WriteSentences(folder_ + "/train.tfrecord", 1, 2000);
    WriteSentences(folder_ + "/test.tfrecord", 2, 500);
  }

  // Runs the job with a command. Returns the accuracy on the test set.
  double AccuracyOf(std::vector<std::string> command) {
    const std::string run_dir = folder_ + "/run";
    for (const std::string& flag :
         {absl::StrCat("--job=", kJob), absl::StrCat("--run_dir=", run_dir),
          std::string("--set"), absl::StrCat("data_dir=", folder_)}) {
      command.push_back(flag);
    }
    const auto process = ProcessUnderTest::Start(command);
    EXPECT_OK(process);
    if (!process.ok()) return 0;
    const absl::StatusOr<ProcessEnd> end = (*process)->AwaitEnd();
    EXPECT_OK(end);
    if (end.ok()) {
      EXPECT_TRUE(end->ok()) << (*process)->output();
    }
    std::ifstream file(run_dir + "/summary.json");
    const auto summary =
        nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
    return summary.is_object()
               ? summary["final"].value("test_binary_accuracy", 0.0)
               : 0;
  }

  const std::string folder_;
};

// Without the order of the words, half of the opinions could not be classified.
TEST_F(TextClassifierTest, TrainsInOneProcess) {
  EXPECT_GE(AccuracyOf({"coordinator/coordinator", "--threads=1"}), 0.95);
}

TEST_F(TextClassifierTest, TrainsOnParameterServers) {
  // Delayed workers compute gradients with older weights, so the accuracy may
  // be lower.
  EXPECT_GE(AccuracyOf({"deploy/launch/launch", "--workers=2", "--ps=2",
                        "--set", "epochs=20"}),
            0.9);
}

TEST_F(TextClassifierTest, TrainsInSync) {
  EXPECT_GE(AccuracyOf({"deploy/launch/launch", "--workers=2", "--ps=0"}),
            0.95);
}

}  // namespace
}  // namespace muster
