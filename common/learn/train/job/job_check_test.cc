#include "common/learn/train/job/job_check.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/learn/train/job/resolved_job.h"
#include "common/net/cluster/cluster_config.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/task_id.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

class JobCheckTest : public testing::Test {
 protected:
  JobCheckTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    Write("t.csv", "id,a,b,c,y\n7,1,2,3,0\n8,4,5,6,1\n9,7,8,9,0\n");
  }

  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ + "/" + name) << content;
  }

  // Checks a job with the model `layers`, or with other parts.
  absl::Status Check(const std::string& text, const ClusterConfig& config = {},
                     const std::string& run_dir = "") {
    Write("t.job", text);
    ASSIGN_OR_RETURN(
        ResolvedJob job,
        ResolvedJob::FromFile(folder_ + "/t.job", {},
                              run_dir.empty() ? folder_ + "/run" : run_dir));
    output_.str("");
    return CheckJob(job, config, output_);
  }

  static std::string Job(const std::string& layers,
                         const std::string& more = "",
                         const std::string& loss =
                             "sparse_categorical_crossentropy { from_logits: "
                             "true }") {
    return absl::StrCat(
        "model { functional { inputs { name: 'x' shape: [3] } ", layers,
        " } } train { csv { path: '${job_dir}/t.csv' label: 'y' id: 'id' } } "
        "optimizer { adam {} } loss { ",
        loss, " } ", more);
  }

  const std::string folder_ = testing::TempDir() + "/job_check";
  std::ostringstream output_;
};

constexpr char kDense[] = "layers { dense { units: 2 } }";

TEST_F(JobCheckTest, AJobThatFitsLeavesNothing) {
  EXPECT_OK(Check(Job(kDense,
                      "callbacks { csv_logger { filename: "
                      "'${run_dir}/logs/log.csv' } } "
                      "test { csv { path: '${job_dir}/t.csv' label: 'y' id: "
                      "'id' } }")));
  EXPECT_THAT(output_.str(), AllOf(HasSubstr("this process"), HasSubstr("MiB"),
                                   Not(HasSubstr("more than there is"))));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/run"));
}

TEST_F(JobCheckTest, FindsALayerThatCannotHaveItsInput) {
  EXPECT_THAT(
      Check(Job("layers { reshape { target_shape: [3, 5] } } layers { flatten "
                "{} } layers { dense { units: 2 } }")),
      StatusIs(kInvalid, HasSubstr("eshape")));
}

TEST_F(JobCheckTest, FindsALossThatDoesNotFit) {
  EXPECT_THAT(Check(Job(kDense, "", "categorical_crossentropy {}")),
              StatusIs(kInvalid, AllOf(HasSubstr("train: "),
                                       HasSubstr("categorical_crossentropy"))));
}

TEST_F(JobCheckTest, FindsAnOpWithoutTranslationForTpus) {
  const std::string job = Job(
      "layers { reshape { target_shape: [3, 1] } } layers { lstm { units: 2 } "
      "}");
  EXPECT_OK(Check(job));
  EXPECT_THAT(Check(job + " strategy { tpu {} }"),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr("train"), HasSubstr("Recurrence"))));
}

TEST_F(JobCheckTest, FindsDataThatAreMissingOrEmpty) {
  EXPECT_THAT(Check(Job(kDense,
                        "test { csv { path: '${job_dir}/none.csv' "
                        "label: 'y' } }")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none.csv")));
  Write("empty.csv", "a,b,c,y\n");
  EXPECT_THAT(
      Check(Job(kDense,
                "validation { csv { path: "
                "'${job_dir}/empty.csv' label: 'y' } }")),
      StatusIs(kInvalid, HasSubstr("validation: there are no examples")));
  std::string job = Job(kDense);
  job.replace(job.find("id: 'id' }"), 10, "id: 'id' } drop_remainder: true");
  EXPECT_THAT(Check(job),
              StatusIs(kInvalid, HasSubstr("train: there are 3 examples, "
                                           "batch_size is 32")));
}

TEST_F(JobCheckTest, FindsFoldersThatCannotBeWritten) {
  Write("file", "");
  EXPECT_THAT(Check(Job(kDense), {}, folder_ + "/file/run"),
              StatusIs(kInvalid, HasSubstr(folder_ + "/file/run")));
  EXPECT_THAT(Check(Job(kDense, absl::StrCat("callbacks { backup_and_restore { "
                                             "backup_dir: '",
                                             folder_, "/file/backup' } }"))),
              StatusIs(kInvalid, HasSubstr("/file/backup")));
}

TEST_F(JobCheckTest, LayersThatSeeDataFirstAreChecked) {
  EXPECT_OK(Check(Job(absl::StrCat("layers { normalization {} } ", kDense))));
}

TEST_F(JobCheckTest, SaysWhatEachTaskNeeds) {
  ASSERT_OK_AND_ASSIGN(
      const ClusterSpec cluster,
      ClusterSpec::FromLists({{TaskType::kChief, {"h:1"}},
                              {TaskType::kWorker, {"h:2", "h:3"}},
                              {TaskType::kPs, {"h:4"}}}));
  // 3 x 1,000,000 numbers and their bias: 15.3 MiB, and twice as much in Adam.
  EXPECT_OK(Check(Job("layers { dense { units: 1000000 } }"),
                  {.cluster = cluster, .source = "test"}));
  EXPECT_THAT(output_.str(),
              AllOf(HasSubstr("each ps       45.8 MiB"),
                    HasSubstr("each worker"), HasSubstr("chief")));
}

}  // namespace
}  // namespace muster
