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
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/fit_options.h"
#include "common/learn/train/evaluate_run.h"
#include "common/learn/train/job/job_data.h"
#include "common/learn/train/job/job_evaluation.h"
#include "common/learn/train/model.h"
#include "common/learn/train/output_folders.h"
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

// `cell` in quotes, and quotes within twice, as in RFC 4180.
std::string CsvCell(absl::string_view cell) {
  return absl::StrCat("\"", absl::StrReplaceAll(cell, {{"\"", "\"\""}}), "\"");
}

// The id of a row, as the data had it: in quotes where it needs them.
std::string CsvId(absl::string_view cell) {
  const bool is_plain =
      cell.find_first_of(",;\t\"\r\n") == absl::string_view::npos;
  return is_plain ? std::string(cell) : CsvCell(cell);
}

// What a file of predictions is made of, batch by batch.
class Predictions {
 public:
  virtual ~Predictions() = default;
  // `ids` has the text that tells each row apart; null: there is none.
  virtual absl::Status Append(absl::Span<const Tensor> outputs,
                              const Tensor* ids) = 0;
  // The bytes of the file.
  virtual absl::StatusOr<std::string> Finish() = 0;
  int64_t row_count() const { return row_count_; }

 protected:
  int64_t row_count_ = 0;
};

class PredictionArray : public Predictions {
 public:
  absl::Status Append(absl::Span<const Tensor> outputs,
                      const Tensor*) override {
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

// The columns of a CSV file of predictions.
struct TableColumns {
  std::string id;  // Empty: there is none.
  std::vector<std::string> outputs;
  bool has_classes = false;
  // Of an output with as many values; empty: classes are numbers.
  std::vector<std::string> class_names;
};

// The text of a CSV file.
class PredictionTable : public Predictions {
 public:
  explicit PredictionTable(TableColumns columns)
      : columns_(std::move(columns)) {}

  absl::Status Append(absl::Span<const Tensor> outputs,
                      const Tensor* ids) override {
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
    for (int64_t row = 0; row < row_count; ++row) {
      if (ids != nullptr) {
        absl::StrAppend(&text_, CsvId(ids->flat<std::string>()[row]), ",");
      }
      AppendRow(outputs, row);
    }
    row_count_ += row_count;
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Finish() override { return text_; }

 private:
  bool HasClass(const Tensor& output) const {
    return columns_.has_classes && WidthOf(output) > 1 &&
           output.dtype() != DType::kString;
  }

  void AppendHeader(absl::Span<const Tensor> outputs) {
    std::vector<std::string> columns;
    if (!columns_.id.empty()) columns.push_back(CsvId(columns_.id));
    const std::vector<std::string>& names = columns_.outputs;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const int64_t width = WidthOf(outputs[i]);
      for (int64_t j = 0; j < width; ++j) {
        columns.push_back(width == 1 ? names[i]
                                     : absl::StrCat(names[i], "_", j));
      }
      if (HasClass(outputs[i])) {
        columns.push_back(absl::StrCat(names[i], "_class"));
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
          absl::StrAppend(&text_, separator, CsvCell(cell));
          separator = ",";
          continue;
        }
        const double value = output.ElementAsDouble(row * width + j);
        if (value > output.ElementAsDouble(row * width + best)) best = j;
        absl::StrAppend(&text_, separator);
        AppendNumber(value, is_float32, &text_);
        separator = ",";
      }
      if (!HasClass(output)) continue;
      const std::vector<std::string>& classes = columns_.class_names;
      const bool has_names = static_cast<int64_t>(classes.size()) == width;
      absl::StrAppend(&text_, separator,
                      has_names ? CsvId(classes[best]) : absl::StrCat(best));
    }
    text_.push_back('\n');
  }

  const TableColumns columns_;
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
                                            const proto::TrainingJob& job,
                                            const std::string& id,
                                            const Layer& layer) {
  if (WritesArray(options)) return std::make_unique<PredictionArray>();
  const auto& class_names = job.train().csv().class_names();
  return std::make_unique<PredictionTable>(
      TableColumns{.id = id,
                   .outputs = OutputNames(layer),
                   .has_classes = options.with_classes,
                   .class_names = {class_names.begin(), class_names.end()}});
}

// With ids, they are the last component of the data.
absl::Status PredictBatches(Model& model, const Dataset& data, bool has_ids,
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
    const Tensor ids = has_ids ? batch.back() : Tensor();
    batch.resize(input_count);
    ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                     model.PredictOnBatch(batch));
    RETURN_IF_ERROR(predictions->Append(outputs, has_ids ? &ids : nullptr));
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
  const std::string& id = description.csv().id();
  RETURN_IF_ERROR(EnsureWritable({FolderOfFile(options.output_file)}));
  RETURN_IF_ERROR(CheckFormat(options));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Strategy> strategy,
      DefaultStrategy::Create({.thread_count = options.thread_count}));
  ASSIGN_OR_RETURN(Model model, LoadTrainedModel(resolved, "predict_data", data,
                                                 options.weights, *strategy));
  const std::unique_ptr<Predictions> predictions =
      PredictionsFor(options, resolved.job(), id, *resolved.layer());
  RETURN_IF_ERROR(
      PredictBatches(model, data, !id.empty(), options, predictions.get()));
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
