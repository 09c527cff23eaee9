#include "common/learn/train/callbacks/csv_logger.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/core/base/log.h"
#include "common/core/base/status_macros.h"
#include "common/io/records/object_sink.h"
#include "common/io/storage/disk.h"
#include "common/io/storage/object_url.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/callbacks/message.h"
#include "common/learn/train/log_lists.h"
#include "common/learn/train/model.h"
#include "common/learn/train/output_folders.h"

namespace muster {
namespace {

constexpr int64_t kObjectBytesMax = int64_t{64} << 20;

// Quotes text that would be parsed as several cells.
std::string Cell(absl::string_view text, absl::string_view separator) {
  const bool is_plain = !absl::StrContains(text, separator) &&
                        text.find_first_of("\"\r\n") == absl::string_view::npos;
  if (is_plain) return std::string(text);
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

// 0.5, or of a list [0.5, 0.75].
std::string CellOf(const LoggedMetric& metric) {
  if (!metric.is_list) return ShortestText(metric.values.front());
  return absl::StrCat("[",
                      absl::StrJoin(metric.values, ", ",
                                    [](std::string* out, double value) {
                                      out->append(ShortestText(value));
                                    }),
                      "]");
}

// The columns, derived from the logs of the first epoch.
std::vector<std::string> ColumnsOf(const Logs& logs) {
  std::vector<std::string> names;
  bool has_validation = false;
  const std::vector<LoggedMetric> metrics = MetricsOf(logs);
  for (const LoggedMetric& metric : metrics) {
    names.push_back(metric.name);
    has_validation |= absl::StartsWith(metric.name, "val_");
  }
  if (has_validation) return names;
  for (const LoggedMetric& metric : metrics) {
    names.push_back(absl::StrCat("val_", metric.name));
  }
  return names;
}

}  // namespace

void CsvLoggerOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("filename", filename);
  visitor.Visit("separator", separator);
  visitor.Visit("append", append);
}

CsvLogger::CsvLogger(CsvLoggerOptions options) : options_(std::move(options)) {}

absl::Status CsvLogger::CheckOptions(const CsvLoggerOptions& options) {
  if (options.filename.empty()) {
    return absl::InvalidArgumentError("CSVLogger: filename is empty");
  }
  if (options.separator.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("CSVLogger: separator must be one character, got \"",
                     options.separator, "\""));
  }
  return absl::OkStatus();
}

absl::Status CsvLogger::OnTrainBegin(Model& model) {
  RETURN_IF_ERROR(CheckOptions(options_));
  if (!model.strategy()->is_chief()) return absl::OkStatus();
  names_.clear();
  file_ = nullptr;
  absl::StatusOr<std::unique_ptr<ByteSink>> file =
      IsObjectUrl(options_.filename) ? OpenObject() : OpenFile();
  if (!file.ok()) {
    return absl::Status(
        file.status().code(),
        absl::StrCat("CSVLogger: ", std::string(file.status().message())));
  }
  file_ = *std::move(file);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ByteSink>> CsvLogger::OpenObject() {
  ObjectSinkOptions options;
  if (options_.append) {
    absl::StatusOr<std::string> content =
        ReadFile(options.disk, options_.filename, kObjectBytesMax);
    if (content.ok()) {
      options.content = *std::move(content);
    } else if (!absl::IsNotFound(content.status())) {
      return content.status();
    }
  }
  needs_header_ = options.content.empty();
  return CreateObjectSink(options_.filename, std::move(options));
}

absl::StatusOr<std::unique_ptr<ByteSink>> CsvLogger::OpenFile() {
  const std::filesystem::path path(options_.filename);
  std::error_code ignored;
  if (path.has_parent_path()) {
    std::filesystem::create_directories(path.parent_path(), ignored);
  }
  needs_header_ = !options_.append ||
                  std::filesystem::file_size(path, ignored) == 0 ||
                  !std::filesystem::exists(path, ignored);
  return options_.append ? CreateAppendingFileSink(options_.filename)
                         : CreateFileSink(options_.filename);
}

absl::Status CsvLogger::OnEpochEnd(Model&, int epoch, const Logs& logs) {
  if (file_ == nullptr) return absl::OkStatus();
  std::string rows;
  if (names_.empty()) {
    names_ = ColumnsOf(logs);
    if (needs_header_) {
      std::vector<std::string> header = {"epoch"};
      header.insert(header.end(), names_.begin(), names_.end());
      rows = Row(header);
      needs_header_ = false;
    }
  }
  std::vector<std::string> row = {absl::StrCat(epoch)};
  const std::vector<LoggedMetric> metrics = MetricsOf(logs);
  for (const std::string& name : names_) {
    const auto found = std::find_if(
        metrics.begin(), metrics.end(),
        [&](const LoggedMetric& metric) { return metric.name == name; });
    row.push_back(found == metrics.end() ? "NA" : CellOf(*found));
  }
  absl::StrAppend(&rows, Row(row));
  absl::Status status = file_->Append(rows);
  if (status.ok()) status = file_->Flush();
  Note(status);
  return absl::OkStatus();
}

absl::Status CsvLogger::OnTrainEnd(Model&, const Logs&) {
  if (file_ != nullptr) Note(file_->Close());
  file_ = nullptr;
  return absl::OkStatus();
}

void CsvLogger::Note(const absl::Status& status) {
  if (status.ok()) return;
  LOG(WARNING) << "CSVLogger: " << status.message()
               << "; training continues without it";
  file_ = nullptr;
}

std::vector<std::string> CsvLogger::output_folders() const {
  // An existing file needs no room in its folder: /dev/stdout, for example.
  std::error_code ignored;
  const bool is_there =
      std::filesystem::exists(options_.filename, ignored) &&
      !std::filesystem::is_directory(options_.filename, ignored);
  if (is_there) return {};
  return {FolderOfFile(options_.filename)};
}

std::string CsvLogger::Row(const std::vector<std::string>& cells) const {
  return absl::StrCat(
      absl::StrJoin(cells, options_.separator,
                    [this](std::string* out, const std::string& cell) {
                      out->append(Cell(cell, options_.separator));
                    }),
      "\n");
}

}  // namespace muster
