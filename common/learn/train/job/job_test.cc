#include "common/learn/train/job/job.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/layer.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/job/job_canonical.h"
#include "common/learn/train/job/job_fit.h"
#include "common/learn/train/job/job_model.h"
#include "common/learn/train/job/resolved_job.h"
#include "common/learn/train/job/testing/parse_job_message.h"
#include "common/learn/train/model.h"
#include "common/learn/train/run_summary.h"
#include "common/learn/train/weights_hash.h"
#include "common/net/process/exit_code.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kJob[] = R"(
  model { sequential {
    layers { normalization {} }
    layers { dense { units: 16 activation: RELU } }
    layers { dropout { rate: 0.1 } }
    layers { dense { units: 3 } }
  } }
  train { synthetic { example_count: 300 feature_count: 6 class_count: 3
                      seed: 1 }
          take: 240 shuffle { buffer: 240 } }
  validation { synthetic { example_count: 300 feature_count: 6 class_count: 3
                           seed: 1 }
               skip: 240 take: 30 }
  test { synthetic { example_count: 300 feature_count: 6 class_count: 3
                     seed: 1 }
         skip: 270 }
  batch_size: 16
  epochs: 6
  optimizer { adam { learning_rate: 0.01 } }
  loss { sparse_categorical_crossentropy { from_logits: true } }
  metrics { sparse_categorical_accuracy {} }
  metrics { name: "top_2" sparse_top_k_categorical_accuracy { k: 2 } }
  seed: 5
)";

proto::TrainingJob ParseJob(const std::string& text) {
  proto::TrainingJob job;
  EXPECT_TRUE(ParseJobMessage(text, &job));
  return job;
}

class JobTest : public ::testing::Test {
 protected:
  absl::StatusOr<RunSummary> Run(const proto::TrainingJob& job,
                                 const std::string& run = "run") {
    output_.str("");
    return RunJob(job, DefaultStrategyFactory(/*thread_count=*/1),
                  {.job_file = "test.job",
                   .run_dir = Path(run),
                   .muster_version = "1.2.3",
                   .verbose = Verbosity::kLines,
                   .output = &output_});
  }

  std::string Path(const std::string& name) const {
    return (std::filesystem::path(testing::TempDir()) / name).string();
  }

  std::string WriteJob(const std::string& text) const {
    const std::string path = Path("written.job");
    std::ofstream(path) << text;
    return path;
  }

  std::ostringstream output_;
};

TEST_F(JobTest, TrainsTestsAndWritesWhatItCameTo) {
  ASSERT_OK_AND_ASSIGN(const RunSummary summary, Run(ParseJob(kJob)));
  EXPECT_GT(summary.final.at("test_sparse_categorical_accuracy"), 0.9);
  EXPECT_GE(summary.final.at("test_top_2"),
            summary.final.at("test_sparse_categorical_accuracy"));

  const std::string path = Path("run/summary.json");
  const std::string weights = Path("run/final_weights");
  EXPECT_THAT(
      output_.str(),
      AllOf(StartsWith("Epoch 1/6\n15/15 - "), HasSubstr("\nTest - loss: "),
            EndsWith(
                absl::StrCat("\nFinal weights: ", weights, "\nSummary: ", path,
                             "\nReport: ", Path("run/report.html"), "\n"))));
  EXPECT_TRUE(std::filesystem::exists(Path("run/report.html")));
  std::ifstream file(path);
  const nlohmann::json json = nlohmann::json::parse(file);
  EXPECT_EQ(json.at("job"), "test.job");
  EXPECT_EQ(json.at("strategy"), "default");
  EXPECT_EQ(json.at("seed"), 5);
  EXPECT_EQ(json.at("steps"), 6 * 15);
  EXPECT_EQ(json.at("examples"), 6 * 240);
  EXPECT_EQ(json.at("history").at("loss").size(), 6u);
  EXPECT_EQ(json.at("history").at("val_top_2").size(), 6u);
  EXPECT_EQ(json.at("final").at("test_loss"), summary.final.at("test_loss"));
  EXPECT_GT(json.at("examples_per_second").get<double>(), 0);
  EXPECT_LE(json.at("worker_step_milliseconds").at("p50").get<double>(),
            json.at("worker_step_milliseconds").at("p99").get<double>());
  EXPECT_EQ(json.at("retries"), 0);
  EXPECT_EQ(json.at("recoveries"), 0);
  EXPECT_EQ(json.at("weights_sha256").get<std::string>().size(), 64u);
  EXPECT_EQ(json.at("versions").at("muster"), "1.2.3");
  EXPECT_EQ(json.at("final_weights"), weights);
}

TEST_F(JobTest, TheFinalWeightsCanBeLoaded) {
  proto::TrainingJob job = ParseJob(kJob);
  job.set_epochs(1);
  // Normalization would have to see the data first.
  job.mutable_model()->mutable_sequential()->mutable_layers()->DeleteSubrange(
      0, 1);
  ASSERT_OK_AND_ASSIGN(const RunSummary summary, Run(job, "saved"));
  ASSERT_OK_AND_ASSIGN(const auto strategy,
                       DefaultStrategy::Create({.thread_count = 1}));
  ASSERT_OK_AND_ASSIGN(const LayerPtr layer, BuildJobModel(job.model()));
  Model model(layer);
  ASSERT_OK_AND_ASSIGN(const CompileOptions options,
                       BuildJobCompileOptions(job, /*seed=*/99));
  ASSERT_OK(model.Compile(*strategy, options));
  ASSERT_OK(model.Build(TensorType{DType::kFloat32, Shape{16, 6}}));
  ASSERT_OK(model.LoadWeights(summary.final_weights));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> values, model.GetWeights());
  std::map<std::string, Tensor> by_name;
  for (size_t i = 0; i < values.size(); ++i) {
    by_name[model.weights()[i].name()] = values[i];
  }
  EXPECT_EQ(HashWeights(by_name), summary.weights_sha256);

  job.set_save_final_weights(false);
  ASSERT_OK_AND_ASSIGN(const RunSummary unsaved, Run(job, "unsaved"));
  EXPECT_EQ(unsaved.final_weights, "");
  EXPECT_FALSE(std::filesystem::exists(Path("unsaved/final_weights.index")));
}

TEST_F(JobTest, ExportsTheModelToOnnx) {
  proto::TrainingJob job = ParseJob(kJob);
  job.set_epochs(1);
  job.set_export_onnx(true);
  ASSERT_OK(Run(job, "exported").status());
  EXPECT_GT(std::filesystem::file_size(Path("exported/final_model.onnx")), 0u);
  EXPECT_THAT(output_.str(),
              HasSubstr(absl::StrCat("\nFinal model for ONNX: ",
                                     Path("exported/final_model.onnx"), "\n")));
}

TEST_F(JobTest, FoldersThatCannotBeWrittenToAreFoundBeforeAnythingIsStarted) {
  const std::string file = Path("a_file");
  std::ofstream(file) << "x";
  bool has_started = false;
  const auto refusal = [&](const proto::TrainingJob& job,
                           const std::string& run_dir) {
    const absl::Status status =
        RunJob(job,
               [&](const ResolvedJob&)
                   -> absl::StatusOr<std::unique_ptr<Strategy>> {
                 has_started = true;
                 return absl::InternalError("it has started");
               },
               {.run_dir = run_dir, .output = &output_})
            .status();
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kUsage) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(refusal(ParseJob(kJob), file), HasSubstr(file));
  const std::string run = Path("writable");
  for (const std::string& field :
       {absl::StrCat("callbacks { csv_logger { filename: '", file, "/a' } }"),
        absl::StrCat("callbacks { tensor_board { log_dir: '", file, "/a' } }"),
        absl::StrCat("callbacks { model_checkpoint { directory: '", file,
                     "/a' } }"),
        absl::StrCat("callbacks { model_checkpoint { filepath: '", file,
                     "/a/{epoch}' } }"),
        absl::StrCat("callbacks { backup_and_restore { backup_dir: '", file,
                     "/a' } }"),
        absl::StrCat("strategy { parameter_server { recovery_dir: '", file,
                     "/a' } }")}) {
    EXPECT_THAT(refusal(ParseJob(absl::StrCat(kJob, field)), run),
                HasSubstr(file))
        << field;
  }
  EXPECT_FALSE(has_started);
}

TEST_F(JobTest, TrainsAsItsOptionsSay) {
  proto::TrainingJob job = ParseJob(absl::StrCat(kJob, R"(
    class_weight { key: 0 value: 0 }
    class_weight { key: 1 value: 0 }
    class_weight { key: 2 value: 0 }
    weighted_metrics { name: "weighted" sparse_categorical_accuracy {} }
    steps_per_execution: 4
    initial_epoch: 1
    validation_freq: 3
    validation_freq: 4
  )"));
  job.mutable_optimizer()->set_clipnorm(0.5);
  ASSERT_OK(Run(job).status());
  std::ifstream file(Path("run/summary.json"));
  const nlohmann::json json = nlohmann::json::parse(file);
  EXPECT_EQ(json.at("steps"), 5 * 15);
  EXPECT_EQ(json.at("history").at("val_loss").size(), 2u);
  EXPECT_EQ(json.at("history").at("loss").at(0), 0);
  EXPECT_EQ(json.at("history").at("weighted").at(0), 0);
  EXPECT_GT(json.at("history").at("val_loss").at(0), 0);
}

TEST_F(JobTest, ALossThatIsNoNumberEndsTheRun) {
  proto::TrainingJob job = ParseJob(kJob);
  job.mutable_optimizer()->mutable_adam()->set_learning_rate(1e20);
  const absl::Status status = Run(job, "diverged").status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal,
                               AllOf(HasSubstr("training diverged: "),
                                     HasSubstr(" after step "),
                                     HasSubstr("fail_on_non_finite"))));
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kFailure);
  std::ifstream file(Path("diverged/summary.json"));
  const nlohmann::json json = nlohmann::json::parse(file);
  EXPECT_LT(json.at("history").at("epoch").size(), 6u);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(json.at("first_non_finite").at("name")));

  job.set_fail_on_non_finite(false);
  EXPECT_OK(Run(job, "diverged").status());
}

TEST_F(JobTest, LabelsOfACsvFileHaveTheTypeThatTheLossCompares) {
  const std::string csv = Path("prices.csv");
  {
    std::ofstream file(csv);
    file << "rooms,price\n";
    for (int i = 0; i < 40; ++i) file << i % 5 << "," << i % 5 * 0.5 << "\n";
  }
  const std::string data =
      absl::StrCat(" { csv { path: '", csv, "' label: 'price' } } ");
  ASSERT_OK_AND_ASSIGN(
      const RunSummary summary,
      Run(ParseJob(absl::StrCat(
              "model { sequential { layers { dense { units: 1 } } } } train",
              data, "test", data,
              "epochs: 60 optimizer { sgd { learning_rate: 0.05 } } "
              "loss { mean_squared_error {} } "
              "metrics { mean_absolute_error {} } seed: 1")),
          "regression"));
  EXPECT_LT(summary.final.at("test_loss"), 0.01);
}

TEST_F(JobTest, ASplitIsTakeAndSkip) {
  ASSERT_OK_AND_ASSIGN(const RunSummary by_hand, Run(ParseJob(kJob)));
  proto::TrainingJob job = ParseJob(kJob);
  job.clear_validation();
  // 270 * (1 - 0.11) is 240.3.
  job.mutable_train()->set_take(270);
  job.set_validation_split(0.11);
  ASSERT_OK_AND_ASSIGN(const RunSummary split, Run(job));
  EXPECT_EQ(split.weights_sha256, by_hand.weights_sha256);
  EXPECT_EQ(split.history.history, by_hand.history.history);
  EXPECT_EQ(split.final, by_hand.final);
}

// A file that appears between the check of the job and its training is not part
// of the data, because the data are opened once.
TEST_F(JobTest, WhatWasCheckedIsWhatIsTrained) {
  const std::string folder = Path("parts");
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const auto write_part = [&](const std::string& name) {
    std::ofstream file(folder + "/" + name);
    file << "a,y\n";
    for (int i = 0; i < 8; ++i) file << i << "," << i << "\n";
  };
  const std::string path = WriteJob(
      "model { sequential { layers { dense { units: 1 } } } } "
      "train { csv { path: '" +
      folder +
      "/*.csv' label: 'y' } } validation_split: 0.5 "
      "optimizer { sgd { learning_rate: 0.001 } } "
      "loss { mean_squared_error {} }");
  for (const bool is_late : {true, false}) {
    write_part("1.csv");
    ASSERT_OK_AND_ASSIGN(ResolvedJob resolved, ResolvedJob::FromFile(path));
    const LayerPtr layer = resolved.layer();
    if (!is_late) {
      ASSERT_OK(resolved.OpenData());
      write_part("2.csv");
    }
    ASSERT_OK_AND_ASSIGN(
        const RunSummary summary,
        RunJob(std::move(resolved),
               [&](const ResolvedJob& job) {
                 if (is_late) write_part("2.csv");
                 return DefaultStrategyFactory(1)(job);
               },
               {.run_dir = Path("parts_run"), .output = &output_}));
    EXPECT_EQ(summary.history.example_count, 4);
    // The model that was checked is the one that has been trained.
    EXPECT_EQ(layer->weights().size(), 2u);
    std::filesystem::remove(folder + "/2.csv");
  }
}

TEST_F(JobTest, RefusesOptionsThatMakeNoSense) {
  const auto refusal = [](const std::string& text) {
    return std::string(
        ValidateJob(ParseJob(absl::StrCat(kJob, text))).message());
  };
  EXPECT_THAT(refusal("class_weight { key: -3 value: 1 }"),
              HasSubstr("class -3"));
  EXPECT_THAT(refusal("steps_per_execution: 0"),
              HasSubstr("steps_per_execution must be at least 1, got 0"));
  EXPECT_THAT(refusal("initial_epoch: -1"), HasSubstr("initial_epoch"));
  EXPECT_THAT(refusal("validation_freq: 0"), HasSubstr("validation_freq"));
  EXPECT_THAT(refusal("weighted_metrics {}"),
              HasSubstr("weighted_metrics[0]: says nothing"));
  EXPECT_THAT(refusal("validation_split: 0.1"),
              HasSubstr("both validation_split and validation"));
  EXPECT_THAT(refusal("validation_split: 1"),
              HasSubstr("validation_split is 1; expected a share"));
  proto::TrainingJob job = ParseJob(kJob);
  job.clear_validation();
  job.set_validation_split(0.1);
  EXPECT_OK(ValidateJob(job));
  job.mutable_input()->set_auto_shard_policy(proto::JobInput::FILE);
  EXPECT_THAT(ValidateJob(job),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("validation_split counts the examples")));
  job = ParseJob(kJob);
  job.mutable_optimizer()->set_clipnorm(1);
  job.mutable_optimizer()->set_clipvalue(1);
  EXPECT_THAT(ValidateJob(job),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("only one of clipnorm, clipvalue")));
}

proto::TrainingJob JobWith(const std::string& strategy) {
  proto::TrainingJob job =
      ParseJob(absl::StrCat(kJob, "strategy { ", strategy, " }"));
  job.set_epochs(2);
  return job;
}

TEST_F(JobTest, ReplicasTrainLikeOne) {
  ASSERT_OK_AND_ASSIGN(const RunSummary one, Run(JobWith("default {}")));
  for (const std::string strategy : {
           "mirrored { devices: 'cpu:0' devices: 'cpu:1' }",
           "central_storage { compute_devices: 'cpu:0' compute_devices: 'cpu:1'"
           " }",
           "multi_worker_mirrored { devices: 'cpu:0' devices: 'cpu:1' "
           "communication { bytes_per_pack: 64 timeout_seconds: 60 } }",
       }) {
    ASSERT_OK_AND_ASSIGN(const RunSummary summary, Run(JobWith(strategy)));
    EXPECT_THAT(strategy, StartsWith(summary.strategy));
    EXPECT_EQ(summary.history.step_count, one.history.step_count);
    EXPECT_EQ(summary.history.example_count, one.history.example_count);
    for (const auto& [name, value] : one.final) {
      EXPECT_NEAR(summary.final.at(name), value, 1e-5) << name;
    }
  }
}

TEST_F(JobTest, DeterministicReplicasHaveTheHashOfOne) {
  ASSERT_OK_AND_ASSIGN(
      const RunSummary one,
      Run(JobWith("one_device { deterministic_micro_batches: 4 }")));
  ASSERT_OK_AND_ASSIGN(
      const RunSummary three,
      Run(JobWith("mirrored { devices: 'cpu:0' devices: 'cpu:1' "
                  "devices: 'cpu:2' deterministic_micro_batches: 4 }")));
  EXPECT_EQ(one.weights_sha256, three.weights_sha256);
}

TEST_F(JobTest, ReplicasDivideTheStateOfTheOptimizer) {
  const std::string devices = "devices: 'cpu:0' devices: 'cpu:1' ";
  const auto run = [&](const std::string& fields) {
    return Run(JobWith("multi_worker_mirrored { " + devices + fields + " }"));
  };
  ASSERT_OK_AND_ASSIGN(const RunSummary whole, run("sharded_state: NONE"));
  ASSERT_OK_AND_ASSIGN(const RunSummary sharded,
                       run("sharded_state: OPTIMIZER"));
  EXPECT_EQ(sharded.weights_sha256, whole.weights_sha256);
  EXPECT_LT(*sharded.report.replica_state_bytes,
            *whole.report.replica_state_bytes);
}

TEST(JobStrategyTest, ErrorsNameTheField) {
  EXPECT_THAT(
      ValidateJob(JobWith("mirrored { devices: 'tpu:0' }")),
      StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("\"tpu:0\"")));
  EXPECT_THAT(
      ValidateJob(JobWith("mirrored { devices: 'a' }")),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("device \"a\"")));
  EXPECT_THAT(ValidateJob(JobWith("tpu { cpu_device_count: -1 }")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("cpu_device_count is -1")));
  EXPECT_THAT(ValidateJob(JobWith(
                  "central_storage { communication { bytes_per_pack: -1 } }")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("communication.bytes_per_pack is -1")));
  EXPECT_THAT(
      ValidateJob(JobWith(
          "multi_worker_mirrored { communication { timeout_seconds: 0 } }")),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("communication.timeout_seconds is 0")));
  EXPECT_THAT(ValidateJob(JobWith("one_device { thread_count: -1 }")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("thread_count is -1")));
}

TEST_F(JobTest, TheSameSeedGivesTheSameBits) {
  proto::TrainingJob job = ParseJob(kJob);
  job.set_epochs(2);
  ASSERT_OK_AND_ASSIGN(const RunSummary first, Run(job));
  ASSERT_OK_AND_ASSIGN(const RunSummary again, Run(job));
  EXPECT_EQ(first.weights_sha256, again.weights_sha256);
  job.set_seed(6);
  ASSERT_OK_AND_ASSIGN(const RunSummary other, Run(job));
  EXPECT_NE(first.weights_sha256, other.weights_sha256);
}

TEST_F(JobTest, AJobForParameterServersSaysWhatItNeeds) {
  proto::TrainingJob job = ParseJob(kJob);
  job.mutable_strategy()->mutable_parameter_server();
  EXPECT_THAT(Run(job), StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("TF_CONFIG")));
}

TEST_F(JobTest, NamesWhatIsMissingOrMakesNoSense) {
  const auto refusal = [](auto change) {
    proto::TrainingJob job = ParseJob(kJob);
    change(job);
    return ValidateJob(job);
  };
  const auto is_refused = [](const std::string& what) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what));
  };
  using Job = proto::TrainingJob;
  EXPECT_OK(refusal([](Job&) {}));
  EXPECT_THAT(refusal([](Job& job) { job.clear_model(); }),
              is_refused("model has no layers"));
  EXPECT_THAT(refusal([](Job& job) { job.clear_loss(); }),
              is_refused("loss is missing"));
  EXPECT_THAT(refusal([](Job& job) { job.clear_optimizer(); }),
              is_refused("optimizer is missing"));
  EXPECT_THAT(refusal([](Job& job) { job.clear_train(); }),
              is_refused("train is missing"));
  EXPECT_THAT(refusal([](Job& job) { job.set_batch_size(0); }),
              is_refused("batch_size must be at least 1, got 0"));
  EXPECT_THAT(refusal([](Job& job) { job.set_epochs(-1); }),
              is_refused("epochs must be at least 1, got -1"));
  EXPECT_THAT(refusal([](Job& job) { job.add_metrics(); }),
              is_refused("metrics[2]: says nothing"));
  EXPECT_THAT(
      refusal([](Job& job) {
        EXPECT_TRUE(ParseJobMessage(
            "dense { units: 0 }",
            job.mutable_model()->mutable_sequential()->mutable_layers(1)));
      }),
      is_refused("model.sequential.layers[1]: dense.units"));
  EXPECT_THAT(refusal([](Job& job) {
                job.mutable_optimizer()->mutable_adam()->set_beta_1(2);
              }),
              is_refused("optimizer: "));
}

constexpr char kNamedLayers[] = R"(
  model { functional {
    inputs { name: "x" shape: 6 }
    layers { name: "backbone" dense { units: 4 } }
    layers { name: "head" dense { units: 3 } }
  } }
)";

TEST_F(JobTest, LayersHaveOptimizersOfTheirOwn) {
  proto::TrainingJob job = ParseJob(kJob);
  job.clear_model();
  job.MergeFrom(ParseJob(absl::StrCat(kNamedLayers, R"(
    layer_optimizers { prefix: "backbone"
                       optimizer { sgd { learning_rate: 0 } } })")));
  ASSERT_OK_AND_ASSIGN(const ResolvedJob resolved, ResolvedJob::FromProto(job));
  ASSERT_OK_AND_ASSIGN(const CompileOptions options,
                       resolved.BuildCompileOptions(/*seed=*/0));
  ASSERT_EQ(options.layer_optimizers.size(), 1u);
  EXPECT_EQ(options.layer_optimizers[0].prefix, "backbone");
  EXPECT_TRUE(options.layer_optimizers[0].optimizer.message().has_sgd());
  EXPECT_TRUE(options.optimizer.message().has_adam());
  EXPECT_THAT(resolved.agreed().text,
              HasSubstr("layer_optimizers[0].prefix: \"backbone\""));
  ASSERT_OK(Run(job).status());
}

TEST_F(JobTest, MistakesInOptimizersOfLayersAreNamed) {
  const auto refused = [](const std::string& layer_optimizers,
                          const std::string& why) {
    proto::TrainingJob job = ParseJob(kJob);
    job.clear_model();
    job.MergeFrom(ParseJob(absl::StrCat(kNamedLayers, layer_optimizers)));
    EXPECT_THAT(ValidateJob(job),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
  };
  refused("layer_optimizers { prefix: \"heat\" optimizer { sgd {} } }",
          "\"heat\" matches no weight of the model; did you mean \"head\"?");
  refused("layer_optimizers { prefix: \"head\" }", "has no optimizer");
  refused(
      "layer_optimizers { prefix: \"head\" optimizer { adam { "
      "beta_1: 2 } } }",
      "prefix \"head\": optimizer: adam: ");
}

TEST_F(JobTest, ReadsAFileAndKnowsItsFolder) {
  const std::string path = WriteJob(
      absl::StrCat(kJob, "variables { name: \"d\" default: \"${job_dir}\" }"));
  ASSERT_OK_AND_ASSIGN(const proto::TrainingJob job, ReadJobFile(path));
  EXPECT_EQ(job.epochs(), 6);
  EXPECT_EQ(absl::StrCat(job.variables(0).default_(), "/written.job"), path);
}

TEST_F(JobTest, ErrorsBeginWithTheFile) {
  const std::string path = WriteJob("epochs: 1\nbatch: 3\n");
  EXPECT_THAT(ReadJobFile(path), StatusIs(absl::StatusCode::kInvalidArgument,
                                          StartsWith(path + ":2:")));
  EXPECT_THAT(ReadJobFile(WriteJob("epochs: 1")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       StartsWith(path + ": model has no layers")));
  EXPECT_THAT(ReadJobFile(WriteJob(" \n")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       StartsWith(path + ": the job file is empty")));
  EXPECT_THAT(ReadJobFile(Path("")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("it is a folder")));
  EXPECT_THAT(
      ReadJobFile("/nonexistent/a.job"),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("/nonexistent/a.job")));
}

}  // namespace
}  // namespace muster
