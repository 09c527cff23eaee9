#include "common/learn/train/job/job_reference.h"

#include <fstream>
#include <sstream>
#include <string>

#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(JobReferenceTest, TheTopLevelHasItsFieldsOnly) {
  ASSERT_OK_AND_ASSIGN(const std::string text, ExplainJobField(""));
  EXPECT_THAT(text, HasSubstr("  epochs: integer\n"));
  EXPECT_THAT(text, HasSubstr("  metrics: list of { ... }\n"));
  EXPECT_THAT(text, Not(HasSubstr("  units:")));
}

TEST(JobReferenceTest, AFieldHasTypesDefaultsAndComments) {
  ASSERT_OK_AND_ASSIGN(const std::string text, ExplainJobField("dense"));
  EXPECT_THAT(text, HasSubstr("layers.dense\n"));
  EXPECT_THAT(text, HasSubstr("  units: integer, required\n"));
  EXPECT_THAT(text, HasSubstr("  activation: LINEAR | RELU | RELU6 |"));
  // Long lines are broken between words.
  EXPECT_THAT(text, ContainsRegex("default[ \n]+LINEAR\n"));
  EXPECT_THAT(text, HasSubstr("  use_bias: true or false, default true\n"));
  EXPECT_THAT(text,
              HasSubstr("kernel_initializer: { ... }, default glorot_uniform"));
}

TEST(JobReferenceTest, OptimizersHaveTheirDefaults) {
  ASSERT_OK_AND_ASSIGN(const std::string adam, ExplainJobField("adam"));
  EXPECT_THAT(adam, HasSubstr("  learning_rate: number, default 0.001\n"));
  ASSERT_OK_AND_ASSIGN(const std::string decay,
                       ExplainJobField("cosine_decay"));
  EXPECT_THAT(decay, HasSubstr("  alpha: number, default 0\n"));
}

TEST(JobReferenceTest, AnUnknownNameIsRefused) {
  EXPECT_THAT(ExplainJobField("unitz"),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("no field of a job file is called "
                                 "\"unitz\"; did you mean \"units\"?")));
}

// `bazel run //common/learn/train/job:print_job_reference` prints the page.
TEST(JobReferenceTest, ThePageIsThatOfTheDocuments) {
  std::ifstream file("docs/job_reference.md");
  std::ostringstream content;
  content << file.rdbuf();
  EXPECT_TRUE(content.str() == JobReferencePage())
      << "docs/job_reference.md is out of date: bazel run "
         "//common/learn/train/job:print_job_reference > docs/job_reference.md";
}

}  // namespace
}  // namespace muster
