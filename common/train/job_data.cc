#include "common/train/job_data.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "common/dataset/dataset.h"
#include "common/dataset/sources.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

using proto::JobData;

absl::StatusOr<Dataset> BuildCsv(const JobData::Csv& csv) {
  CsvOptions options{.label_column = csv.label(), .scale = csv.scale()};
  if (csv.delimiter().size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "csv.delimiter must be one character, got \"", csv.delimiter(), "\""));
  }
  if (!csv.delimiter().empty()) options.delimiter = csv.delimiter()[0];
  return Csv(csv.path(), options);
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

absl::StatusOr<Dataset> BuildSource(const JobData& data, uint64_t seed) {
  switch (data.source_case()) {
    case JobData::kIdx:
      return IdxPair(data.idx().images(), data.idx().labels(),
                     {.scale = data.idx().scale()});
    case JobData::kCsv:
      return BuildCsv(data.csv());
    case JobData::kSynthetic:
      return BuildSynthetic(data.synthetic(), seed);
    case JobData::kMnist:
      return Mnist(data.mnist().directory(),
                   data.mnist().split() == JobData::Mnist::TEST
                       ? Split::kTest
                       : Split::kTrain);
    case JobData::SOURCE_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "no source; expected mnist, idx, csv or synthetic");
}

absl::StatusOr<Dataset> BuildBatches(const JobData& data, int64_t batch_size,
                                     uint64_t seed) {
  ASSIGN_OR_RETURN(Dataset dataset, BuildSource(data, seed));
  if (data.has_skip()) dataset = dataset.Skip(data.skip());
  if (data.has_take()) dataset = dataset.Take(data.take());
  if (data.cache()) dataset = dataset.Cache();
  if (data.has_shuffle()) {
    const JobData::Shuffle& shuffle = data.shuffle();
    ShuffleOptions options{
        .seed = shuffle.has_seed() ? shuffle.seed() : FoldIn(seed, "shuffle"),
        // Workers go through the same data, each in an order of its own.
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

}  // namespace

absl::StatusOr<Dataset> BuildJobData(const JobData& data,
                                     absl::string_view field,
                                     int64_t batch_size, uint64_t seed) {
  absl::StatusOr<Dataset> dataset = BuildBatches(data, batch_size, seed);
  if (dataset.ok()) return dataset;
  return absl::Status(dataset.status().code(),
                      absl::StrCat(field, ": ", dataset.status().message()));
}

}  // namespace muster
