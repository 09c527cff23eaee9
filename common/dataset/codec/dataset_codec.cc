#include "common/dataset/codec/dataset_codec.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_codec.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/available_cpus.h"
#include "common/core/tensor/tensor.h"
#include "common/core/tensor/tensor_codec.h"
#include "common/dataset/autotune.h"
#include "common/dataset/codec/decode_files.h"
#include "common/dataset/combine_stages.h"
#include "common/dataset/component_stages.h"
#include "common/dataset/dataset_node.h"
#include "common/dataset/files/csv.h"
#include "common/dataset/files/idx.h"
#include "common/dataset/files/sources.h"
#include "google/protobuf/repeated_field.h"
#include "proto/dataset.pb.h"
#include "proto/tensor.pb.h"

namespace muster {
namespace {

using Stage = proto::DatasetStage;

// Each is a thread for the lifetime of an iterator.
constexpr int64_t kThreadCountMax = 256;
// For one element, over all stages: nested zips would double it each time.
constexpr size_t kComponentCountMax = 1024;

absl::StatusOr<Element> DecodeComponents(
    const google::protobuf::RepeatedPtrField<proto::Tensor>& encoded) {
  Element components;
  for (const proto::Tensor& tensor : encoded) {
    ASSIGN_OR_RETURN(components.emplace_back(), DecodeTensor(tensor));
  }
  return components;
}

absl::StatusOr<DType> DecodeOptionalDType(proto::DataType dtype) {
  if (dtype == proto::DT_INVALID) return DType::kInvalid;
  return DecodeDType(dtype);
}

absl::StatusOr<Dataset> DecodeIdx(const Stage::Idx& idx) {
  IdxOptions options = {.scale = idx.scale()};
  ASSIGN_OR_RETURN(options.dtype, DecodeOptionalDType(idx.dtype()));
  if (idx.has_record_shape()) {
    ASSIGN_OR_RETURN(options.record_shape,
                     DecodeShape(idx.record_shape(), false));
  }
  if (idx.has_label_shape()) {
    ASSIGN_OR_RETURN(options.label_shape,
                     DecodeShape(idx.label_shape(), false));
  }
  options.order = DecodeFileOrder(idx.order());
  return Dataset(MakeIdx({idx.path().begin(), idx.path().end()},
                         {idx.label_path().begin(), idx.label_path().end()},
                         options));
}

absl::StatusOr<Dataset> DecodeCsv(const Stage::Csv& csv) {
  CsvOptions options = {.label_column = csv.label_column(),
                        .has_header = !csv.no_header(),
                        .pack_features = !csv.separate_features(),
                        .scale = csv.scale(),
                        .order = DecodeFileOrder(csv.order())};
  for (const Stage::Csv::Column& column : csv.columns()) {
    CsvColumn decoded = {.name = column.name()};
    if (column.dtype() != proto::DT_INVALID) {
      ASSIGN_OR_RETURN(decoded.dtype, DecodeDType(column.dtype()));
    }
    if (column.has_default_value()) {
      decoded.default_value = column.default_value();
    }
    decoded.class_names = {column.class_names().begin(),
                           column.class_names().end()};
    decoded.is_date = column.is_date();
    options.columns.push_back(std::move(decoded));
  }
  if (csv.delimiter().size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "delimiter is \"", csv.delimiter(), "\"; expected one character"));
  }
  if (!csv.delimiter().empty()) options.delimiter = csv.delimiter()[0];
  return Dataset(MakeCsv({csv.path().begin(), csv.path().end()}, options));
}

// A dataset without inputs.
absl::StatusOr<Dataset> DecodeSource(const Stage& stage) {
  switch (stage.kind_case()) {
    case Stage::kFromTensors: {
      ASSIGN_OR_RETURN(Element components,
                       DecodeComponents(stage.from_tensors().components()));
      return Dataset::FromTensors(std::move(components));
    }
    case Stage::kFromTensorSlices: {
      ASSIGN_OR_RETURN(
          Element components,
          DecodeComponents(stage.from_tensor_slices().components()));
      return Dataset::FromTensorSlices(std::move(components));
    }
    case Stage::kRange:
      return Dataset::Range(stage.range().start(), stage.range().stop(),
                            stage.range().step());
    case Stage::kIdx:
      return DecodeIdx(stage.idx());
    case Stage::kCsv:
      return DecodeCsv(stage.csv());
    case Stage::kImageFiles:
      return Dataset(DecodeImageFiles(stage.image_files()));
    case Stage::kTfRecords:
      return Dataset(DecodeTfRecords(stage.tf_records()));
    case Stage::kTextLines:
      return Dataset(DecodeTextLines(stage.text_lines()));
    case Stage::kNpy:
      return Dataset(DecodeNpy(stage.npy()));
    default:
      return Synthetic({.example_count = stage.synthetic().example_count(),
                        .feature_count = stage.synthetic().feature_count(),
                        .class_count = stage.synthetic().class_count(),
                        .noise = stage.synthetic().noise(),
                        .seed = stage.synthetic().seed()});
  }
}

absl::StatusOr<Dataset> DecodeMap(const Dataset& input, const Stage::Map& map) {
  if (map.built_in_case() != Stage::Map::BUILT_IN_NOT_SET) {
    return Dataset(DecodeBuiltInMap(input.node(), map));
  }
  ASSIGN_OR_RETURN(Graph graph, DecodeGraph(map.function(), BuiltinOps()));
  return input.Map(std::move(graph),
                   {.thread_count = map.thread_count(), .seed = map.seed()});
}

absl::StatusOr<Dataset> DecodeFilter(const Dataset& input,
                                     const Stage::Filter& filter) {
  ASSIGN_OR_RETURN(Graph graph, DecodeGraph(filter.predicate(), BuiltinOps()));
  return input.Filter(std::move(graph));
}

// The padding of both stages.
template <typename Encoded, typename Options>
absl::Status DecodePadding(const Encoded& encoded, Options* options) {
  for (const proto::TensorShape& shape : encoded.padded_shapes()) {
    ASSIGN_OR_RETURN(options->padded_shapes.emplace_back(),
                     DecodeShape(shape, true));
  }
  ASSIGN_OR_RETURN(options->padding_values,
                   DecodeComponents(encoded.padding_values()));
  options->drop_remainder = encoded.drop_remainder();
  return absl::OkStatus();
}

absl::StatusOr<Dataset> DecodePaddedBatch(const Dataset& input,
                                          const Stage::PaddedBatch& batch) {
  PaddedBatchOptions options = {.length_multiple = batch.length_multiple()};
  RETURN_IF_ERROR(DecodePadding(batch, &options));
  return input.PaddedBatch(batch.batch_size(), options);
}

absl::StatusOr<Dataset> DecodeBuckets(
    const Dataset& input, const Stage::BucketBySequenceLength& buckets) {
  BucketOptions options = {
      .component = buckets.component(),
      .boundaries = {buckets.boundaries().begin(), buckets.boundaries().end()},
      .batch_sizes = {buckets.batch_sizes().begin(),
                      buckets.batch_sizes().end()},
      .pad_to_bucket_boundary = buckets.pad_to_bucket_boundary()};
  RETURN_IF_ERROR(DecodePadding(buckets, &options));
  return input.BucketBySequenceLength(options);
}

absl::StatusOr<Dataset> DecodeWindow(const Dataset& input,
                                     const Stage::Window& window) {
  if (window.shift() == 0) {
    return absl::InvalidArgumentError("shift is 0; expected at least 1");
  }
  return input.Window(window.size(),
                      {.shift = window.shift(),
                       .stride = window.stride(),
                       .drop_remainder = window.drop_remainder()});
}

// A dataset that changes `input`.
absl::StatusOr<Dataset> DecodeChange(const Stage& stage, const Dataset& input) {
  switch (stage.kind_case()) {
    case Stage::kMap:
      return DecodeMap(input, stage.map());
    case Stage::kFilter:
      return DecodeFilter(input, stage.filter());
    case Stage::kShuffle: {
      const Stage::Shuffle& shuffle = stage.shuffle();
      return input.Shuffle(
          shuffle.buffer_size(),
          {.seed = shuffle.seed(),
           .reshuffle_each_iteration = !shuffle.same_order_each_iteration(),
           .decorrelate = shuffle.decorrelate()});
    }
    case Stage::kRepeat:
      return input.Repeat(stage.repeat().count());
    case Stage::kBatch:
      return input.Batch(stage.batch().batch_size(),
                         {.drop_remainder = stage.batch().drop_remainder()});
    case Stage::kPaddedBatch:
      return DecodePaddedBatch(input, stage.padded_batch());
    case Stage::kBucketBySequenceLength:
      return DecodeBuckets(input, stage.bucket_by_sequence_length());
    case Stage::kWindow:
      return DecodeWindow(input, stage.window());
    case Stage::kUnbatch:
      return input.Unbatch();
    case Stage::kComponents:
      return Dataset(MakeComponents(input.node(),
                                    {stage.components().index().begin(),
                                     stage.components().index().end()},
                                    {stage.components().name().begin(),
                                     stage.components().name().end()}));
    case Stage::kTake:
      return input.Take(stage.take().count());
    case Stage::kSkip:
      return input.Skip(stage.skip().count());
    case Stage::kShard:
      return input.Shard(stage.shard().shard_count(), stage.shard().index());
    case Stage::kShardByPipeline:
      return input.ShardByPipeline();
    case Stage::kCache:
      return stage.cache().filename().empty()
                 ? input.Cache()
                 : input.Cache(stage.cache().filename());
    case Stage::kPrefetch:
      return input.Prefetch(stage.prefetch().buffer_size());
    default:
      return absl::InvalidArgumentError("no kind is set");
  }
}

bool IsSource(Stage::KindCase kind) {
  return kind == Stage::kFromTensors || kind == Stage::kFromTensorSlices ||
         kind == Stage::kRange || kind == Stage::kIdx || kind == Stage::kCsv ||
         kind == Stage::kSynthetic || kind == Stage::kImageFiles ||
         kind == Stage::kTfRecords || kind == Stage::kTextLines ||
         kind == Stage::kNpy;
}

// The number of datasets that a stage combines; 0: it is not such a stage.
int CombinedInputCount(const Stage& stage) {
  switch (stage.kind_case()) {
    case Stage::kZip:
      return stage.zip().input_count();
    case Stage::kConcatenate:
      return stage.concatenate().input_count();
    case Stage::kInterleave:
      return stage.interleave().input_count();
    case Stage::kSampleFromDatasets:
      return stage.sample_from_datasets().input_count();
    default:
      return 0;
  }
}

bool IsCombination(Stage::KindCase kind) {
  return kind == Stage::kZip || kind == Stage::kConcatenate ||
         kind == Stage::kInterleave || kind == Stage::kSampleFromDatasets;
}

Dataset Combine(const Stage& stage, std::vector<Dataset> inputs) {
  if (stage.has_zip()) return Dataset::Zip(std::move(inputs));
  if (stage.has_interleave()) {
    return Dataset::Interleave(
        std::move(inputs), {.cycle_length = stage.interleave().cycle_length(),
                            .block_length = stage.interleave().block_length()});
  }
  if (stage.has_sample_from_datasets()) {
    const Stage::SampleFromDatasets& sample = stage.sample_from_datasets();
    return Dataset::SampleFromDatasets(
        std::move(inputs),
        {.weights = {sample.weights().begin(), sample.weights().end()},
         .seed = sample.seed(),
         .stop_on_empty_dataset = sample.stop_on_empty_dataset(),
         .rerandomize_each_iteration = !sample.same_order_each_iteration()});
  }
  std::vector<NodePointer> nodes;
  for (const Dataset& input : inputs) nodes.push_back(input.node());
  return Dataset(MakeConcatenate(std::move(nodes)));
}

// Applies one stage to the datasets on the stack.
absl::Status DecodeStage(const Stage& stage, std::vector<Dataset>* waiting) {
  absl::StatusOr<Dataset> made;
  if (IsSource(stage.kind_case())) {
    made = DecodeSource(stage);
  } else if (IsCombination(stage.kind_case())) {
    const int count = CombinedInputCount(stage);
    if (count < 1 || static_cast<size_t>(count) > waiting->size()) {
      return absl::InvalidArgumentError(absl::StrCat("input_count is ", count,
                                                     "; ", waiting->size(),
                                                     " datasets are there"));
    }
    std::vector<Dataset> inputs(waiting->end() - count, waiting->end());
    waiting->resize(waiting->size() - count);
    made = Combine(stage, std::move(inputs));
  } else if (waiting->empty()) {
    return absl::InvalidArgumentError(
        "there is no dataset for it; expected a source first");
  } else {
    made = DecodeChange(stage, waiting->back());
    waiting->pop_back();
  }
  RETURN_IF_ERROR(made.status());
  RETURN_IF_ERROR(made->status());
  if (made->element_types().size() > kComponentCountMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("elements have ", made->element_types().size(),
                     " components; the limit is ", kComponentCountMax));
  }
  waiting->push_back(*std::move(made));
  return absl::OkStatus();
}

absl::Status CheckLimits(const proto::Dataset& encoded) {
  if (encoded.stages_size() > kDatasetStageCountMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a dataset of ", encoded.stages_size(),
                     " stages; the limit is ", kDatasetStageCountMax));
  }
  int64_t thread_count = 0;
  for (const Stage& stage : encoded.stages()) {
    if (stage.has_prefetch()) ++thread_count;
    if (stage.has_map() && stage.map().thread_count() == kAutotune) {
      thread_count += AvailableCpus();
    } else if (stage.has_map() && stage.map().thread_count() > 1) {
      thread_count += stage.map().thread_count();
    }
  }
  if (thread_count > kThreadCountMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a dataset with ", thread_count, " threads; the limit is ",
                     kThreadCountMax));
  }
  return absl::OkStatus();
}

std::string KindName(const Stage& stage) {
  const auto* const oneof = Stage::descriptor()->FindOneofByName("kind");
  const auto* const field =
      stage.GetReflection()->GetOneofFieldDescriptor(stage, oneof);
  return field == nullptr ? "unknown" : field->name();
}

}  // namespace

absl::StatusOr<proto::Dataset> EncodeDataset(const Dataset& dataset) {
  RETURN_IF_ERROR(dataset.status());
  proto::Dataset encoded;
  RETURN_IF_ERROR(dataset.node()->Encode(&encoded));
  return encoded;
}

absl::StatusOr<Dataset> DecodeDataset(const proto::Dataset& encoded) {
  RETURN_IF_ERROR(CheckLimits(encoded));
  std::vector<Dataset> waiting;
  for (int i = 0; i < encoded.stages_size(); ++i) {
    const absl::Status status = DecodeStage(encoded.stages(i), &waiting);
    if (!status.ok()) {
      return absl::Status(
          status.code(),
          absl::StrCat("dataset stage ", i, " (", KindName(encoded.stages(i)),
                       "): ", status.message()));
    }
  }
  if (waiting.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("after the last stage of a dataset ", waiting.size(),
                     " datasets are left; expected 1"));
  }
  return std::move(waiting[0]);
}

}  // namespace muster
