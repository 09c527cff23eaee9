#include "common/learn/train/job/job_csv.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/quoted_text.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/dataset/dataset.h"
#include "common/dataset/files/csv_header.h"
#include "common/dataset/files/sources.h"
#include "common/learn/train/job/job_data_files.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

using proto::JobData;

bool Has(const std::vector<std::string>& names, absl::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// How to train on a column of which a cell is not what is expected.
std::string WaysWithText(const JobData::Csv& csv, absl::string_view column,
                         bool has_column_inputs) {
  if (column == csv.label()) {
    return csv.class_names().empty()
               ? "; the labels of this loss are numbers: name all classes in "
                 "csv.class_names, class 0 first"
               : "; csv.class_names has the names of all classes";
  }
  if (std::count(csv.date_columns().begin(), csv.date_columns().end(), column) >
      0) {
    return "; csv.date_columns names columns of dates";
  }
  const absl::string_view take =
      "dtype: \"string\" and a string_lookup or hashing layer, as in "
      "examples/wide_and_deep/census.job";
  const std::string name = QuotedText(column);
  const absl::string_view of_dates =
      "; name a column of dates in csv.date_columns";
  if (has_column_inputs) {
    return absl::StrCat("; give the model's input ", name, " ", take,
                        ", or remove this input", of_dates);
  }
  return absl::StrCat(
      csv.columns().empty()
          ? "; all columns but the label are features: name those that are "
            "numbers in csv.columns"
          : "; leave it out of csv.columns",
      ", or give the model an input for each column, and the one for ", name,
      " ", take, of_dates);
}

// Opens the files once.
class CsvOpener {
 public:
  CsvOpener(const JobData::Csv& csv, const std::vector<ColumnInput>& inputs)
      : csv_(csv),
        inputs_(inputs),
        paths_(csv.path().begin(), csv.path().end()) {}

  // Without a label type, labels are not read.
  absl::StatusOr<JobCsv> Open(std::optional<DType> label_type) {
    RETURN_IF_ERROR(CheckFields());
    if (!csv_.delimiter().empty()) options_.delimiter = csv_.delimiter()[0];
    // Errors are found again by the dataset.
    header_ = ReadCsvHeader(paths_, options_.delimiter)
                  .value_or(std::vector<std::string>());
    if (!header_.empty() && !csv_.id().empty() && !Has(header_, csv_.id())) {
      return absl::InvalidArgumentError(
          absl::StrCat(paths_.front(), ": there is no column ",
                       QuotedText(csv_.id()), ", which csv.id names"));
    }
    options_.scale = csv_.scale();
    options_.order = BuildFileOrder(csv_.order());
    RETURN_IF_ERROR(AddFeatures());
    if (label_type.has_value() && !csv_.label().empty()) AddLabel(*label_type);
    JobCsv opened = {.dataset = CsvFiles(paths_, options_),
                     .input_names = {},
                     .unused_columns = UnusedColumns()};
    if (TakesColumns()) {
      for (const ColumnInput& input : inputs_) {
        opened.input_names.push_back(input.name);
      }
    }
    RETURN_IF_ERROR(WithWays(opened.dataset.status()));
    if (TakesColumns() && features_.size() == 1 && inputs_.size() == 1) {
      opened.dataset = opened.dataset.Rename({{features_[0], inputs_[0].name}});
    }
    if (!label_type.has_value() && !csv_.id().empty()) {
      opened.dataset = Dataset::Zip({opened.dataset, Ids()});
    }
    RETURN_IF_ERROR(opened.dataset.status());
    return opened;
  }

 private:
  absl::Status CheckFields() const {
    if (paths_.empty()) {
      return absl::InvalidArgumentError(
          "csv.path is missing; expected one path at least");
    }
    if (csv_.delimiter().size() > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("csv.delimiter must be one character, got ",
                       QuotedText(csv_.delimiter())));
    }
    if (!csv_.class_names().empty() && csv_.label().empty()) {
      return absl::InvalidArgumentError(
          "csv.class_names are of labels, and csv.label names no column");
    }
    for (const JobData::Csv::Column& column : csv_.columns()) {
      const bool is_label = column.name() == csv_.label();
      if (!is_label && (csv_.id().empty() || column.name() != csv_.id())) {
        continue;
      }
      return absl::InvalidArgumentError(
          absl::StrCat("csv.columns has the ", is_label ? "label " : "id ",
                       QuotedText(column.name()), "; expected features only"));
    }
    return absl::OkStatus();
  }

  bool IsFeature(const std::string& name) const {
    return name != csv_.label() && (csv_.id().empty() || name != csv_.id());
  }

  // True if each input takes a column.
  bool TakesColumns() const {
    if (inputs_.size() != 1) return !inputs_.empty();
    const ColumnInput& input = inputs_.front();
    if (input.dtype == DType::kString) return true;
    return csv_.columns().empty() && input.is_single_number &&
           Has(header_, input.name) && IsFeature(input.name);
  }

  absl::Status AddFeatures() {
    for (const JobData::Csv::Column& column : csv_.columns()) {
      options_.columns.push_back({.name = column.name()});
      if (column.has_default_value()) {
        options_.columns.back().default_value = column.default_value();
      }
    }
    const bool takes_columns = TakesColumns();
    if (csv_.columns().empty() && takes_columns) {
      for (const ColumnInput& input : inputs_) {
        options_.columns.push_back({.name = input.name});
      }
    } else if (csv_.columns().empty()) {
      for (const std::string& name : header_) {
        if (IsFeature(name)) options_.columns.push_back({.name = name});
      }
    }
    if (options_.columns.empty() && !header_.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(paths_.front(),
                       ": there is no column of features beside csv.label and "
                       "csv.id"));
    }
    for (const CsvColumn& column : options_.columns) {
      features_.push_back(column.name);
    }
    if (takes_columns) SeparateColumns();
    return MarkDates();
  }

  // Reads a component of each column, with the dtype of the input of its name.
  void SeparateColumns() {
    options_.pack_features = false;
    const bool is_only = inputs_.size() == 1 && options_.columns.size() == 1;
    for (CsvColumn& column : options_.columns) {
      const auto input = std::find_if(
          inputs_.begin(), inputs_.end(), [&](const ColumnInput& candidate) {
            return is_only || candidate.name == column.name;
          });
      // A column of no input is refused by its name, whatever it holds.
      column.dtype = input == inputs_.end() ? DType::kString : input->dtype;
    }
  }

  absl::Status MarkDates() {
    for (const std::string& name : csv_.date_columns()) {
      const auto column = std::find_if(
          options_.columns.begin(), options_.columns.end(),
          [&](const CsvColumn& candidate) { return candidate.name == name; });
      if (column != options_.columns.end()) {
        column->is_date = true;
      } else if (!header_.empty()) {
        return absl::InvalidArgumentError(
            absl::StrCat("csv.date_columns has ", QuotedText(name),
                         ", which is no column of features"));
      }
    }
    return absl::OkStatus();
  }

  void AddLabel(DType type) {
    options_.label_column = csv_.label();
    options_.label_dtype = type;
    if (options_.columns.empty()) return;
    options_.columns.push_back({.name = csv_.label(),
                                .dtype = type,
                                .class_names = {csv_.class_names().begin(),
                                                csv_.class_names().end()}});
  }

  Dataset Ids() const {
    return CsvFiles(paths_,
                    {.columns = {{.name = csv_.id(), .dtype = DType::kString}},
                     .delimiter = options_.delimiter,
                     .pack_features = false,
                     .order = options_.order})
        .WithNames({});
  }

  std::vector<std::string> UnusedColumns() const {
    std::vector<std::string> unused;
    for (const std::string& name : header_) {
      if (IsFeature(name) && !Has(features_, name)) unused.push_back(name);
    }
    return unused;
  }

  absl::Status WithWays(const absl::Status& status) const {
    const auto column = status.GetPayload(kCsvNotANumberUrl);
    if (!column.has_value()) return status;
    return absl::Status(
        status.code(),
        absl::StrCat(status.message(),
                     WaysWithText(csv_, std::string(*column), TakesColumns())));
  }

  const JobData::Csv& csv_;
  const std::vector<ColumnInput>& inputs_;
  const std::vector<std::string> paths_;
  std::vector<std::string> header_;  // Empty if it cannot be read.
  std::vector<std::string> features_;
  CsvOptions options_;
};

}  // namespace

absl::StatusOr<JobCsv> OpenJobCsv(const proto::JobData_Csv& csv,
                                  DType label_type,
                                  const std::vector<ColumnInput>& inputs) {
  return CsvOpener(csv, inputs).Open(label_type);
}

absl::StatusOr<JobCsv> OpenJobCsvInputs(
    const proto::JobData_Csv& csv, const std::vector<ColumnInput>& inputs) {
  return CsvOpener(csv, inputs).Open(/*label_type=*/std::nullopt);
}

}  // namespace muster
