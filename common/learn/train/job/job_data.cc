#include "common/learn/train/job/job_data.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/dataset/files/sources.h"
#include "common/learn/nn/image/augmentation.h"
#include "common/learn/nn/image/mixed_images.h"
#include "common/learn/nn/layer.h"
#include "common/learn/strategy/input/distributed_dataset.h"
#include "common/learn/train/epoch_plan.h"
#include "common/learn/train/job/job_batch_stream.h"
#include "common/learn/train/job/job_csv.h"
#include "common/learn/train/job/job_data_files.h"
#include "common/learn/train/named_inputs.h"
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

std::vector<std::string> InputNames(const std::vector<ColumnInput>& inputs) {
  std::vector<std::string> names;
  for (const ColumnInput& input : inputs) names.push_back(input.name);
  return names;
}

// Leaves the features their names if they are those of the model's inputs.
// Otherwise they are inputs by position.
Dataset NameFeatures(const Dataset& dataset, const JobData::TfRecord& record,
                     size_t feature_count,
                     const std::vector<ColumnInput>& inputs) {
  std::vector<std::string> names(record.features_size());
  for (size_t i = 0; i < feature_count; ++i) {
    names[i] = record.features(static_cast<int>(i)).key();
  }
  const std::vector<std::string> input_names = InputNames(inputs);
  const bool are_inputs = feature_count == inputs.size() &&
                          std::is_permutation(input_names.begin(),
                                              input_names.end(), names.begin());
  return dataset.WithNames(are_inputs ? names : std::vector<std::string>());
}

// A dataset whose seed is not known yet.
using SeededSource = std::function<Dataset(uint64_t seed)>;

SeededSource BuildSynthetic(const JobData::Synthetic& synthetic) {
  SyntheticOptions options{.class_count = synthetic.class_count()};
  if (synthetic.example_count() > 0) {
    options.example_count = synthetic.example_count();
  }
  if (synthetic.feature_count() > 0) {
    options.feature_count = synthetic.feature_count();
  }
  if (synthetic.has_noise()) options.noise = synthetic.noise();
  std::optional<uint64_t> own_seed;
  if (synthetic.has_seed()) own_seed = synthetic.seed();
  return [options, own_seed](uint64_t seed) {
    SyntheticOptions seeded = options;
    seeded.seed = own_seed.value_or(seed);
    return Synthetic(seeded);
  };
}

// The last feature is the label.
absl::StatusOr<Dataset> BuildRecords(const JobData::TfRecord& record,
                                     const std::vector<ColumnInput>& inputs) {
  ASSIGN_OR_RETURN(const Dataset dataset, BuildTfRecord(record));
  return NameFeatures(dataset, record,
                      static_cast<size_t>(record.features_size()) - 1, inputs);
}

absl::StatusOr<Dataset> BuildUnseeded(const JobData& data,
                                      const std::vector<ColumnInput>& inputs) {
  switch (data.source_case()) {
    case JobData::kIdx:
      return BuildIdx(data.idx());
    case JobData::kMnist:
      return Mnist(data.mnist().directory(),
                   data.mnist().split() == JobData::Mnist::TEST
                       ? DatasetSplit::kTest
                       : DatasetSplit::kTrain);
    case JobData::kTfRecord:
      if (data.tf_record().features_size() < 2) {
        return absl::InvalidArgumentError(absl::StrCat(
            "tf_record.features are ", data.tf_record().features_size(),
            "; expected two at least, the last being the label"));
      }
      return BuildRecords(data.tf_record(), inputs);
    case JobData::kNpy:
      return BuildNpy(data.npy());
    case JobData::kBatchStream:
      return BuildBatchStream(data.batch_stream());
    default:
      return absl::InvalidArgumentError(
          "no source; expected image_folder, tf_record, npy, mnist, idx, csv, "
          "batch_stream or synthetic");
  }
}

// Of all sources but CSV files.
absl::StatusOr<SeededSource> BuildSource(
    const JobData& data, const std::vector<ColumnInput>& inputs) {
  if (data.has_synthetic()) return BuildSynthetic(data.synthetic());
  if (data.has_image_folder()) {
    if (data.image_folder().shuffle() && (data.has_skip() || data.has_take())) {
      return absl::InvalidArgumentError(
          "image_folder.shuffle with skip or take, which would be other "
          "images in each epoch; divide them by image_folder.subset");
    }
    return BuildImageFolder(data.image_folder());
  }
  ASSIGN_OR_RETURN(const Dataset dataset, BuildUnseeded(data, inputs));
  return [dataset](uint64_t) { return dataset; };
}

// What `skip` and `take` leave of a source.
std::function<absl::StatusOr<Dataset>(uint64_t)> ExamplesOf(
    SeededSource source, const JobData& data) {
  return [source = std::move(source),
          data](uint64_t seed) -> absl::StatusOr<Dataset> {
    Dataset dataset = source(seed);
    if (data.has_skip()) dataset = dataset.Skip(data.skip());
    if (data.has_take()) dataset = dataset.Take(data.take());
    RETURN_IF_ERROR(dataset.status());
    return dataset;
  };
}

// Of all sources but CSV files.
absl::StatusOr<SeededSource> BuildInputs(
    const JobData& data, const std::vector<ColumnInput>& inputs) {
  JobData in_order = data;
  Dataset dataset;
  switch (data.source_case()) {
    case JobData::kIdx: {
      RETURN_IF_ERROR(ExpectFiles("idx.images", data.idx().images_size()));
      dataset =
          IdxFiles({data.idx().images().begin(), data.idx().images().end()},
                   {.scale = data.idx().scale(),
                    .order = BuildFileOrder(data.idx().order())});
      break;
    }
    case JobData::kNpy: {
      ASSIGN_OR_RETURN(dataset, BuildNpyFeatures(data.npy()));
      break;
    }
    case JobData::kTfRecord: {
      // The last feature is the label.
      JobData::TfRecord record = data.tf_record();
      if (record.features_size() > 1) record.mutable_features()->RemoveLast();
      ASSIGN_OR_RETURN(dataset, BuildTfRecord(record));
      dataset = NameFeatures(
          dataset, record, static_cast<size_t>(record.features_size()), inputs);
      break;
    }
    default:
      in_order.mutable_image_folder()->clear_shuffle();
      return BuildSource(data.has_image_folder() ? in_order : data, inputs);
  }
  return [dataset](uint64_t) { return dataset; };
}

// Pads examples whose extents are not all known.
Dataset BatchExamples(const Dataset& examples, const JobData& data,
                      int64_t batch_size) {
  if (data.has_bucket_by_sequence_length()) {
    const JobData::Buckets& buckets = data.bucket_by_sequence_length();
    BucketOptions options = {
        .component = buckets.feature(),
        .boundaries = {buckets.boundaries().begin(),
                       buckets.boundaries().end()},
        .batch_sizes = {buckets.batch_sizes().begin(),
                        buckets.batch_sizes().end()},
        .drop_remainder = data.drop_remainder(),
        .pad_to_bucket_boundary = buckets.pad_to_bucket_boundary()};
    if (options.batch_sizes.empty()) {
      options.batch_sizes.assign(options.boundaries.size() + 1, batch_size);
    }
    return examples.BucketBySequenceLength(options);
  }
  const std::vector<TensorType>& types = examples.element_types();
  const bool varies = std::any_of(
      types.begin(), types.end(),
      [](const TensorType& type) { return !type.shape.IsFullyKnown(); });
  if (!varies) {
    return examples.Batch(batch_size,
                          {.drop_remainder = data.drop_remainder()});
  }
  PaddedBatchOptions options = {.drop_remainder = data.drop_remainder()};
  if (data.has_length_multiple()) {
    options.length_multiple = data.length_multiple();
  }
  return examples.PaddedBatch(batch_size, options);
}

// Labels and mixtures of whole batches.
absl::StatusOr<Dataset> ChangeBatches(Dataset batches, const JobData& data,
                                      uint64_t seed) {
  if (data.has_one_hot_classes()) {
    batches = batches.Map(OneHotLabels(data.one_hot_classes()));
  }
  const auto map_options = [seed](const auto& mixing, absl::string_view field) {
    return MapOptions{.seed = mixing.has_seed() ? mixing.seed()
                                                : FoldIn(seed, field)};
  };
  if (data.has_mix_up()) {
    MixUpOptions options;
    if (data.mix_up().has_alpha()) options.alpha = data.mix_up().alpha();
    batches = batches.Map(MixUpBatches(options),
                          map_options(data.mix_up(), "mix_up"));
  }
  if (data.has_cut_mix()) {
    const auto& factor = data.cut_mix().factor();
    CutMixOptions options;
    if (factor.size() == 1) options.factor = factor[0];
    if (factor.size() == 2) options.factor = UnitFactor(factor[0], factor[1]);
    if (factor.size() > 2) {
      return absl::InvalidArgumentError(absl::StrCat(
          "cut_mix.factor must be one number or two, got ", factor.size()));
    }
    batches = batches.Map(CutMixBatches(options),
                          map_options(data.cut_mix(), "cut_mix"));
  }
  return batches;
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
  ASSIGN_OR_RETURN(
      dataset,
      ChangeBatches(BatchExamples(dataset, data, batch_size), data, seed));
  if (data.repeat()) dataset = dataset.Repeat();
  RETURN_IF_ERROR(dataset.status());
  return dataset;
}

// The inputs of a model that receive features by name. None if there is one
// input, of numbers: it takes all features.
std::vector<ColumnInput> NamedInputs(const std::vector<ColumnInput>& inputs) {
  const bool is_packed =
      inputs.size() == 1 && inputs[0].dtype != DType::kString;
  return is_packed ? std::vector<ColumnInput>() : inputs;
}

// With the name of what it is about.
absl::Status Named(absl::string_view field, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(field, ": ", status.message()));
}

}  // namespace

std::vector<ColumnInput> ColumnInputsOf(const Layer& model) {
  std::vector<ColumnInput> inputs;
  for (const Layer* const layer : InputLayersOf(model)) {
    const TensorType type = layer->input_types().front();
    const auto extents = type.shape.dims();
    const bool is_single_number =
        type.dtype != DType::kString && !extents.empty() &&
        std::all_of(extents.begin() + 1, extents.end(),
                    [](int64_t extent) { return extent == 1; });
    inputs.push_back({layer->name(), type.dtype, is_single_number});
  }
  return inputs;
}

absl::StatusOr<JobSource> JobSource::Open(
    const JobData& data, absl::string_view field, DType label_type,
    double validation_split, const std::vector<ColumnInput>& inputs) {
  const auto open = [&]() -> absl::StatusOr<JobSource> {
    if (validation_split != 0 && data.image_folder().shuffle()) {
      return absl::InvalidArgumentError(
          "image_folder.shuffle with validation_split, which would be other "
          "images in each epoch; use image_folder.validation_split, or shuffle "
          "behind it");
    }
    JobSource source;
    source.data_ = data;
    source.field_ = std::string(field);
    if (data.has_csv()) {
      ASSIGN_OR_RETURN(
          JobCsv csv,
          OpenJobCsv(data.csv(),
                     data.has_one_hot_classes() ? DType::kInt64 : label_type,
                     inputs));
      source.UseCsv(std::move(csv));
    } else {
      source.input_names_ = InputNames(NamedInputs(inputs));
      ASSIGN_OR_RETURN(SeededSource seeded,
                       BuildSource(data, NamedInputs(inputs)));
      source.examples_ = ExamplesOf(std::move(seeded), data);
    }
    ASSIGN_OR_RETURN(const Dataset examples, source.examples_(/*seed=*/0));
    if (validation_split == 0) return source;
    ASSIGN_OR_RETURN(const int64_t example_count, examples.CountElements());
    ASSIGN_OR_RETURN(source.train_count_,
                     TrainingExampleCount(example_count, validation_split));
    return source;
  };
  absl::StatusOr<JobSource> source = open();
  if (source.ok()) return source;
  return Named(field, source.status());
}

absl::StatusOr<JobSource> JobSource::OpenInputs(
    const JobData& data, absl::string_view field,
    const std::vector<ColumnInput>& inputs) {
  JobSource source;
  source.data_ = data;
  source.data_.clear_one_hot_classes();
  source.field_ = std::string(field);
  if (data.has_csv()) {
    absl::StatusOr<JobCsv> csv = OpenJobCsvInputs(data.csv(), inputs);
    if (!csv.ok()) return Named(field, csv.status());
    source.UseCsv(*std::move(csv));
  } else {
    source.input_names_ = InputNames(NamedInputs(inputs));
    absl::StatusOr<SeededSource> built = BuildInputs(data, NamedInputs(inputs));
    if (!built.ok()) return Named(field, built.status());
    source.examples_ = ExamplesOf(*std::move(built), data);
  }
  const absl::Status opened = source.examples_(/*seed=*/0).status();
  if (!opened.ok()) return Named(field, opened);
  return source;
}

void JobSource::UseCsv(JobCsv csv) {
  input_names_ = std::move(csv.input_names);
  unused_columns_ = std::move(csv.unused_columns);
  examples_ = ExamplesOf(
      [dataset = std::move(csv.dataset)](uint64_t) { return dataset; }, data_);
}

absl::StatusOr<Dataset> JobSource::Batches(int64_t batch_size,
                                           uint64_t seed) const {
  ASSIGN_OR_RETURN(Dataset examples, examples_(seed));
  if (train_count_.has_value()) examples = examples.Take(*train_count_);
  return Ordered(BuildBatches(std::move(examples), data_, batch_size, seed));
}

absl::StatusOr<Dataset> JobSource::BatchesInOrder(int64_t batch_size,
                                                  uint64_t seed) const {
  ASSIGN_OR_RETURN(const Dataset examples, examples_(seed));
  return InOrder(
      train_count_.has_value() ? examples.Skip(*train_count_) : examples,
      batch_size, seed);
}

absl::StatusOr<Dataset> JobSource::TrainingInOrder(int64_t batch_size) const {
  ASSIGN_OR_RETURN(const Dataset examples, examples_(/*seed=*/0));
  return InOrder(
      train_count_.has_value() ? examples.Take(*train_count_) : examples,
      batch_size, /*seed=*/0);
}

absl::StatusOr<Dataset> JobSource::InOrder(Dataset examples, int64_t batch_size,
                                           uint64_t seed) const {
  JobData once = data_;
  once.clear_shard_by_pipeline();
  once.clear_cache_file();
  once.clear_shuffle();
  once.clear_repeat();
  once.clear_drop_remainder();
  once.clear_mix_up();
  once.clear_cut_mix();
  return Ordered(BuildBatches(std::move(examples), once, batch_size, seed));
}

absl::StatusOr<Dataset> JobSource::Ordered(
    absl::StatusOr<Dataset> batches) const {
  if (batches.ok()) {
    batches = InOrderOfNames(input_names_, /*outputs=*/{}, *batches);
  }
  if (batches.ok()) return batches;
  return Named(field_, batches.status());
}

absl::StatusOr<InputOptions> BuildJobInput(const proto::JobInput& input) {
  InputOptions options;
  if (!proto::JobInput::AutoShardPolicy_IsValid(input.auto_shard_policy())) {
    return absl::InvalidArgumentError(
        absl::StrCat("input.auto_shard_policy is ", input.auto_shard_policy(),
                     "; expected AUTO, FILE, DATA, HINT or OFF"));
  }
  options.auto_shard_policy =
      static_cast<AutoShardPolicy>(input.auto_shard_policy());
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
