#include "common/learn/train/job/job_data.h"

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/dataset/dataset.h"
#include "common/dataset/files/sources.h"
#include "common/learn/strategy/input/distributed_dataset.h"
#include "common/learn/train/job/job_data_files.h"
#include "common/learn/train/validation_split.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

using proto::JobData;

absl::Status ExpectFiles(absl::string_view field, int count) {
  if (count > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is missing; expected one path at least"));
}

absl::StatusOr<Dataset> BuildIdx(const JobData::Idx& idx) {
  RETURN_IF_ERROR(ExpectFiles("idx.images", idx.images_size()));
  RETURN_IF_ERROR(ExpectFiles("idx.labels", idx.labels_size()));
  return IdxPairFiles(
      {idx.images().begin(), idx.images().end()},
      {idx.labels().begin(), idx.labels().end()},
      {.scale = idx.scale(), .order = BuildFileOrder(idx.order())});
}

absl::StatusOr<Dataset> BuildCsv(const JobData::Csv& csv, DType label_type) {
  RETURN_IF_ERROR(ExpectFiles("csv.path", csv.path_size()));
  CsvOptions options{.label_column = csv.label(),
                     .label_dtype = label_type,
                     .scale = csv.scale(),
                     .order = BuildFileOrder(csv.order())};
  if (csv.delimiter().size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "csv.delimiter must be one character, got \"", csv.delimiter(), "\""));
  }
  if (!csv.delimiter().empty()) options.delimiter = csv.delimiter()[0];
  return CsvFiles({csv.path().begin(), csv.path().end()}, options);
}

Dataset BuildSynthetic(const JobData::Synthetic& synthetic, uint64_t seed) {
  SyntheticOptions options{.class_count = synthetic.class_count()};
  if (synthetic.example_count() > 0) {
    options.example_count = synthetic.example_count();
  }
  if (synthetic.feature_count() > 0) {
    options.feature_count = synthetic.feature_count();
  }
  if (synthetic.has_noise()) options.noise = synthetic.noise();
  options.seed = synthetic.has_seed() ? synthetic.seed() : seed;
  return Synthetic(options);
}

absl::StatusOr<Dataset> BuildSource(const JobData& data, DType label_type,
                                    uint64_t seed) {
  switch (data.source_case()) {
    case JobData::kIdx:
      return BuildIdx(data.idx());
    case JobData::kCsv:
      return BuildCsv(data.csv(), label_type);
    case JobData::kSynthetic:
      return BuildSynthetic(data.synthetic(), seed);
    case JobData::kMnist:
      return Mnist(data.mnist().directory(),
                   data.mnist().split() == JobData::Mnist::TEST
                       ? DatasetSplit::kTest
                       : DatasetSplit::kTrain);
    case JobData::kImageFolder:
      if (data.image_folder().shuffle() &&
          (data.has_skip() || data.has_take())) {
        return absl::InvalidArgumentError(
            "image_folder.shuffle with skip or take, which would be other "
            "images in each epoch; divide them by image_folder.subset");
      }
      return BuildImageFolder(data.image_folder(), seed);
    case JobData::kTfRecord:
      return BuildTfRecord(data.tf_record());
    case JobData::kNpy:
      return BuildNpy(data.npy());
    case JobData::SOURCE_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "no source; expected image_folder, tf_record, npy, mnist, idx, csv or "
      "synthetic");
}

absl::StatusOr<Dataset> BuildExamples(const JobData& data, DType label_type,
                                      uint64_t seed) {
  ASSIGN_OR_RETURN(Dataset dataset, BuildSource(data, label_type, seed));
  if (data.has_skip()) dataset = dataset.Skip(data.skip());
  if (data.has_take()) dataset = dataset.Take(data.take());
  RETURN_IF_ERROR(dataset.status());
  return dataset;
}

absl::StatusOr<Dataset> BuildBatches(Dataset dataset, const JobData& data,
                                     int64_t batch_size, uint64_t seed) {
  if (data.shard_by_pipeline()) dataset = dataset.ShardByPipeline();
  if (!data.cache_file().empty()) {
    dataset = dataset.Cache(data.cache_file());
  } else if (data.cache()) {
    dataset = dataset.Cache();
  }
  if (data.has_shuffle()) {
    const JobData::Shuffle& shuffle = data.shuffle();
    ShuffleOptions options{
        .seed = shuffle.has_seed() ? shuffle.seed() : FoldIn(seed, "shuffle"),
        // Workers that go through the same data on their own do so each in
        // another order.
        .decorrelate = true};
    if (shuffle.has_reshuffle_each_iteration()) {
      options.reshuffle_each_iteration = shuffle.reshuffle_each_iteration();
    }
    dataset = dataset.Shuffle(shuffle.buffer(), options);
  }
  dataset =
      dataset.Batch(batch_size, {.drop_remainder = data.drop_remainder()});
  if (data.repeat()) dataset = dataset.Repeat();
  RETURN_IF_ERROR(dataset.status());
  return dataset;
}

absl::StatusOr<Dataset> BuildWhole(const JobData& data, DType label_type,
                                   int64_t batch_size, uint64_t seed) {
  ASSIGN_OR_RETURN(Dataset examples, BuildExamples(data, label_type, seed));
  return BuildBatches(std::move(examples), data, batch_size, seed);
}

absl::StatusOr<SplitJobData> BuildSplit(const JobData& data, DType label_type,
                                        double validation_split,
                                        int64_t batch_size, uint64_t seed) {
  if (data.image_folder().shuffle()) {
    return absl::InvalidArgumentError(
        "image_folder.shuffle with validation_split, which would be other "
        "images in each epoch; use image_folder.validation_split, or shuffle "
        "behind it");
  }
  ASSIGN_OR_RETURN(const Dataset examples,
                   BuildExamples(data, label_type, seed));
  ASSIGN_OR_RETURN(const int64_t example_count, examples.CountElements());
  ASSIGN_OR_RETURN(const int64_t train_count,
                   TrainingExampleCount(example_count, validation_split));
  JobData once = data;
  once.clear_shard_by_pipeline();
  once.clear_cache_file();
  once.clear_shuffle();
  once.clear_repeat();
  once.clear_drop_remainder();
  SplitJobData split;
  ASSIGN_OR_RETURN(split.train, BuildBatches(examples.Take(train_count), data,
                                             batch_size, seed));
  ASSIGN_OR_RETURN(split.validation, BuildBatches(examples.Skip(train_count),
                                                  once, batch_size, seed));
  return split;
}

// With the name of what it is about.
absl::Status Named(absl::string_view field, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(field, ": ", status.message()));
}

}  // namespace

absl::StatusOr<Dataset> BuildJobData(const JobData& data,
                                     absl::string_view field, DType label_type,
                                     int64_t batch_size, uint64_t seed) {
  absl::StatusOr<Dataset> dataset =
      BuildWhole(data, label_type, batch_size, seed);
  if (dataset.ok()) return dataset;
  return Named(field, dataset.status());
}

absl::StatusOr<SplitJobData> BuildSplitJobData(
    const JobData& data, absl::string_view field, DType label_type,
    double validation_split, int64_t batch_size, uint64_t seed) {
  absl::StatusOr<SplitJobData> split =
      BuildSplit(data, label_type, validation_split, batch_size, seed);
  if (split.ok()) return split;
  return Named(field, split.status());
}

absl::StatusOr<InputOptions> BuildJobInput(const proto::JobInput& input) {
  InputOptions options;
  switch (input.auto_shard_policy()) {
    case proto::JobInput::AUTO:
      options.auto_shard_policy = AutoShardPolicy::kAuto;
      break;
    case proto::JobInput::FILE:
      options.auto_shard_policy = AutoShardPolicy::kFile;
      break;
    case proto::JobInput::DATA:
      options.auto_shard_policy = AutoShardPolicy::kData;
      break;
    case proto::JobInput::HINT:
      options.auto_shard_policy = AutoShardPolicy::kHint;
      break;
    case proto::JobInput::OFF:
      options.auto_shard_policy = AutoShardPolicy::kOff;
      break;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("input.auto_shard_policy is ", input.auto_shard_policy(),
                       "; expected AUTO, FILE, DATA, HINT or OFF"));
  }
  if (input.has_prefetch_step_count()) {
    options.prefetch_step_count = input.prefetch_step_count();
  }
  if (options.prefetch_step_count < 0 ||
      options.prefetch_step_count > kPrefetchStepCountMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input.prefetch_step_count must be 0 to ", kPrefetchStepCountMax,
        ", got ", options.prefetch_step_count));
  }
  return options;
}

}  // namespace muster
