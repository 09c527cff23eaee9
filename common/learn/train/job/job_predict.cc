#include "common/learn/train/job/job_predict.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/dataset/files/npy.h"
#include "common/io/storage/disk.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/layer.h"
#include "common/learn/strategy/default_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/adapt.h"
#include "common/learn/train/fit_options.h"
#include "common/learn/train/job/job_data.h"
#include "common/learn/train/model.h"
#include "common/learn/train/output_folders.h"
#include "common/learn/train/predict_run.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

using proto::JobData;

// Makes the description read `file` in place of its own.
absl::Status ReadInstead(const std::string& file, JobData* data) {
  data->clear_skip();
  data->clear_take();
  switch (data->source_case()) {
    case JobData::kCsv:
      data->mutable_csv()->clear_path();
      data->mutable_csv()->add_path(file);
      return absl::OkStatus();
    case JobData::kIdx:
      data->mutable_idx()->clear_images();
      data->mutable_idx()->add_images(file);
      return absl::OkStatus();
    case JobData::kNpy:
      if (data->npy().more_features_size() > 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            "--predict_data=", file, " is one file, and the model takes ",
            data->npy().more_features_size() + 1,
            " arrays; describe all of them in the job's predict_data"));
      }
      data->mutable_npy()->clear_features();
      data->mutable_npy()->add_features(file);
      return absl::OkStatus();
    case JobData::kTfRecord:
      data->mutable_tf_record()->clear_path();
      data->mutable_tf_record()->add_path(file);
      return absl::OkStatus();
    case JobData::kImageFolder:
      data->mutable_image_folder()->set_directory(file);
      data->mutable_image_folder()->clear_validation_split();
      data->mutable_image_folder()->clear_subset();
      return absl::OkStatus();
    default:
      return absl::InvalidArgumentError(absl::StrCat(
          "--predict_data=", file,
          " cannot take the place of the job's data, "
          "which are not csv, npy, idx, tf_record or image_folder; describe "
          "the file in the job's predict_data"));
  }
}

absl::StatusOr<JobData> DataToPredict(const proto::TrainingJob& job,
                                      const std::string& file) {
  if (file.empty()) {
    if (job.has_predict_data()) return job.predict_data();
    return absl::InvalidArgumentError(
        "predict_data is missing; expected for example predict_data { csv { "
        "path: \"new.csv\" } } in the job, or --predict_data=new.csv");
  }
  JobData data = job.has_predict_data() ? job.predict_data()
                 : job.has_test()       ? job.test()
                 : job.has_validation() ? job.validation()
                                        : job.train();
  RETURN_IF_ERROR(ReadInstead(file, &data));
  return data;
}

std::vector<std::string> OutputNames(const Layer& layer) {
  const bool is_functional =
      dynamic_cast<const FunctionalLayer*>(&layer) != nullptr;
  if (is_functional || layer.layers().empty()) return layer.output_names();
  return {layer.layers().back()->name()};
}

// Returns how many values an output has for each example.
int64_t WidthOf(const Tensor& output) {
  const int64_t row_count = output.shape().dims()[0];
  return row_count == 0 ? 0 : output.element_count() / row_count;
}

void AppendNumber(double value, bool is_float32, std::string* text) {
  char digits[32];
  // The shortest text that reads back as the same number.
  const std::to_chars_result end =
      is_float32 ? std::to_chars(digits, digits + sizeof(digits),
                                 static_cast<float>(value))
                 : std::to_chars(digits, digits + sizeof(digits), value);
  text->append(digits, end.ptr);
}

// What a file of predictions is made of, batch by batch.
class Predictions {
 public:
  virtual ~Predictions() = default;
  virtual absl::Status Append(absl::Span<const Tensor> outputs) = 0;
  // The bytes of the file.
  virtual absl::StatusOr<std::string> Finish() = 0;
  int64_t row_count() const { return row_count_; }

 protected:
  int64_t row_count_ = 0;
};

class PredictionArray : public Predictions {
 public:
  absl::Status Append(absl::Span<const Tensor> outputs) override {
    if (outputs.size() != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("the model has ", outputs.size(),
                       " outputs, and a .npy file has one array; write CSV"));
    }
    row_count_ += outputs[0].shape().dim(0);
    batches_.push_back(outputs[0].Clone());
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Finish() override {
    ASSIGN_OR_RETURN(const Tensor whole, ConcatenateRows(batches_));
    return NpyFileOf(whole);
  }

 private:
  std::vector<Tensor> batches_;
};

// The text of a CSV file.
class PredictionTable : public Predictions {
 public:
  PredictionTable(std::vector<std::string> names, bool with_classes)
      : names_(std::move(names)), with_classes_(with_classes) {}

  absl::Status Append(absl::Span<const Tensor> outputs) override {
    if (text_.empty()) AppendHeader(outputs);
    const int64_t row_count = outputs[0].shape().dims()[0];
    for (const Tensor& output : outputs) {
      if (output.shape().dims()[0] == row_count) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("the model's outputs have ", row_count, " and ",
                       output.shape().dims()[0],
                       " rows for one batch; "
                       "expected one row for each example"));
    }
    for (int64_t row = 0; row < row_count; ++row) AppendRow(outputs, row);
    row_count_ += row_count;
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Finish() override { return text_; }

 private:
  bool HasClass(const Tensor& output) const {
    return with_classes_ && WidthOf(output) > 1 &&
           output.dtype() != DType::kString;
  }

  void AppendHeader(absl::Span<const Tensor> outputs) {
    std::vector<std::string> columns;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const int64_t width = WidthOf(outputs[i]);
      for (int64_t j = 0; j < width; ++j) {
        columns.push_back(width == 1 ? names_[i]
                                     : absl::StrCat(names_[i], "_", j));
      }
      if (HasClass(outputs[i])) {
        columns.push_back(absl::StrCat(names_[i], "_class"));
      }
    }
    text_ = absl::StrCat(absl::StrJoin(columns, ","), "\n");
  }

  void AppendRow(absl::Span<const Tensor> outputs, int64_t row) {
    absl::string_view separator = "";
    for (const Tensor& output : outputs) {
      const int64_t width = WidthOf(output);
      const bool is_float32 = output.dtype() != DType::kFloat64;
      int64_t best = 0;
      for (int64_t j = 0; j < width; ++j) {
        if (output.dtype() == DType::kString) {
          const std::string& cell = output.flat<std::string>()[row * width + j];
          // As RFC 4180 has it: quotes around the cell, and twice within.
          absl::StrAppend(&text_, separator, "\"",
                          absl::StrReplaceAll(cell, {{"\"", "\"\""}}), "\"");
          separator = ",";
          continue;
        }
        const double value = output.ElementAsDouble(row * width + j);
        if (value > output.ElementAsDouble(row * width + best)) best = j;
        absl::StrAppend(&text_, separator);
        AppendNumber(value, is_float32, &text_);
        separator = ",";
      }
      if (HasClass(output)) absl::StrAppend(&text_, separator, best);
    }
    text_.push_back('\n');
  }

  const std::vector<std::string> names_;
  const bool with_classes_;
  std::string text_;
};

bool WritesArray(const PredictJobOptions& options) {
  return absl::EndsWith(options.output_file, ".npy");
}

absl::Status CheckFormat(const PredictJobOptions& options) {
  if (!WritesArray(options) || !options.with_classes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--predict_classes adds a column, which ",
                   options.output_file, " cannot have; write CSV"));
}

// `layer` has been built, so that the layers inside have names.
std::unique_ptr<Predictions> PredictionsFor(const PredictJobOptions& options,
                                            const Layer& layer) {
  if (WritesArray(options)) return std::make_unique<PredictionArray>();
  return std::make_unique<PredictionTable>(OutputNames(layer),
                                           options.with_classes);
}

// Compiles and builds the model for the data, and loads the weights.
absl::StatusOr<Model> LoadModel(ResolvedJob& resolved, const Dataset& data,
                                const std::string& weights,
                                Strategy& strategy) {
  if (NeedsDataBesideWeights(resolved.layer())) {
    ASSIGN_OR_RETURN(const Dataset data_to_adapt, resolved.DataToAdapt());
    RETURN_IF_ERROR(Adapt(resolved.layer(), data_to_adapt));
  }
  // Makes the weights of the right shapes. LoadWeights() replaces the values.
  RETURN_IF_ERROR(Adapt(resolved.layer(), data.Take(1)));
  Model model(resolved.layer());
  ASSIGN_OR_RETURN(CompileOptions compile_options,
                   resolved.BuildCompileOptions(/*seed=*/0));
  RETURN_IF_ERROR(model.Compile(strategy, std::move(compile_options)));
  const size_t input_count =
      static_cast<size_t>(std::max(1, resolved.layer()->input_count()));
  const absl::Span<const TensorType> types = data.element_types();
  if (types.size() < input_count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "predict_data: the model has ", input_count,
        " inputs, the data's examples have ", types.size(), " components"));
  }
  absl::Status fits = model.Build(types.subspan(0, input_count));
  if (fits.ok()) fits = model.LoadWeights(weights);
  if (fits.ok()) return model;
  return absl::Status(
      fits.code(),
      absl::StrCat("cannot predict with the weights ", weights, " for inputs ",
                   absl::StrJoin(types.subspan(0, input_count), ", ",
                                 [](std::string* text, const TensorType& type) {
                                   absl::StrAppend(text, type.ToString());
                                 }),
                   ": ", fits.message()));
}

absl::Status PredictBatches(Model& model, const Dataset& data,
                            const PredictJobOptions& options,
                            Predictions* predictions) {
  const size_t input_count =
      static_cast<size_t>(std::max(1, model.layer()->input_count()));
  const int64_t cardinality = data.Cardinality();
  std::optional<int64_t> batch_count;
  if (cardinality >= 0) batch_count = cardinality;
  ProgressBar progress({.target = batch_count,
                        .verbosity = ResolveVerbosity(options.verbose, true),
                        .output = options.output});
  ASSIGN_OR_RETURN(const std::unique_ptr<DatasetIterator> iterator,
                   data.MakeIterator());
  Element batch;
  int64_t done = 0;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_batch, iterator->Next(&batch));
    if (!has_batch) break;
    batch.resize(input_count);
    ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                     model.PredictOnBatch(batch));
    RETURN_IF_ERROR(predictions->Append(outputs));
    progress.Update(++done, {});
  }
  if (done == 0) {
    return absl::InvalidArgumentError(
        "predict_data: there are no examples to predict for");
  }
  progress.Finish(done, {});
  return absl::OkStatus();
}

}  // namespace

absl::Status PredictJob(ResolvedJob resolved,
                        const PredictJobOptions& options) {
  ASSIGN_OR_RETURN(const JobData description,
                   DataToPredict(resolved.job(), options.data_file));
  ASSIGN_OR_RETURN(const JobSource source,
                   JobSource::OpenInputs(description, "predict_data",
                                         ColumnInputsOf(*resolved.layer())));
  ASSIGN_OR_RETURN(
      const Dataset data,
      source.BatchesInOrder(resolved.batch_size(), resolved.job().seed()));
  RETURN_IF_ERROR(EnsureWritable({FolderOfFile(options.output_file)}));
  RETURN_IF_ERROR(CheckFormat(options));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Strategy> strategy,
      DefaultStrategy::Create({.thread_count = options.thread_count}));
  ASSIGN_OR_RETURN(Model model,
                   LoadModel(resolved, data, options.weights, *strategy));
  const std::unique_ptr<Predictions> predictions =
      PredictionsFor(options, *resolved.layer());
  RETURN_IF_ERROR(PredictBatches(model, data, options, predictions.get()));
  ASSIGN_OR_RETURN(const std::string bytes, predictions->Finish());
  RETURN_IF_ERROR(ReplaceFile(Disk::Real(), options.output_file, bytes));
  if (options.verbose != Verbosity::kSilent) {
    std::ostream& output =
        options.output == nullptr ? std::cout : *options.output;
    output << "Predictions: " << options.output_file << " ("
           << predictions->row_count() << " rows)" << std::endl;
  }
  return absl::OkStatus();
}

}  // namespace muster
