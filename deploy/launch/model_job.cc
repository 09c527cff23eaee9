#include "deploy/launch/model_job.h"

#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

// Number of examples in memory from which the next one is drawn.
constexpr int64_t kShuffleBuffer = 100'000;

// Returns the absolute path as a quoted string of protobuf's text format.
absl::StatusOr<std::string> QuotedPath(absl::string_view flag,
                                       const std::string& path) {
  if (absl::StrContains(path, "${")) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag, "=", path,
                     ": job files replace \"${name}\"; rename the file"));
  }
  const std::string absolute =
      std::filesystem::absolute(path).lexically_normal().string();
  return absl::StrCat("\"", absl::Utf8SafeCEscape(absolute), "\"");
}

absl::StatusOr<std::string> CsvSource(absl::string_view flag,
                                      const std::string& path,
                                      const std::string& label) {
  ASSIGN_OR_RETURN(const std::string quoted, QuotedPath(flag, path));
  return absl::StrCat("  csv { path: ", quoted, " label: \"",
                      absl::Utf8SafeCEscape(label.empty() ? "label" : label),
                      "\" }\n");
}

absl::StatusOr<std::string> NpySource(absl::string_view flag,
                                      const std::string& path,
                                      absl::string_view label_flag,
                                      const std::string& labels) {
  if (!absl::EndsWith(labels, ".npy")) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", label_flag, "=", labels, ": expected the labels of ",
                     path, " in a .npy file"));
  }
  ASSIGN_OR_RETURN(const std::string quoted, QuotedPath(flag, path));
  ASSIGN_OR_RETURN(const std::string quoted_labels,
                   QuotedPath(label_flag, labels));
  return absl::StrCat("  npy { features: ", quoted, " labels: ", quoted_labels,
                      " }\n");
}

absl::StatusOr<std::string> Source(absl::string_view flag,
                                   const std::string& path,
                                   absl::string_view label_flag,
                                   const ModelJob& job) {
  const bool is_validation = flag == "validation";
  if (absl::EndsWith(path, ".csv")) {
    if (is_validation && !job.validation_label.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--validation_label=", job.validation_label,
          " is for .npy files; a CSV file has the column of --label"));
    }
    return CsvSource(flag, path, job.label);
  }
  if (absl::EndsWith(path, ".npy")) {
    return NpySource(flag, path, label_flag,
                     is_validation ? job.validation_label : job.label);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, "=", path,
                   ": expected a name that ends in .csv or .npy; a job file "
                   "(--job) reads other formats"));
}

}  // namespace

absl::StatusOr<std::string> MakeModelJob(const ModelJob& job) {
  if (!absl::EndsWith(job.model, ".keras")) {
    return absl::InvalidArgumentError(
        absl::StrCat("--model=", job.model,
                     ": expected a name that ends in .keras, which "
                     "model.save() of Keras 3 writes"));
  }
  if (job.train.empty()) {
    return absl::InvalidArgumentError(
        "--train is missing; expected --train=FILE.csv, or --train=X.npy and "
        "--label=Y.npy");
  }
  ASSIGN_OR_RETURN(const std::string model, QuotedPath("model", job.model));
  ASSIGN_OR_RETURN(const std::string train,
                   Source("train", job.train, "label", job));
  std::string text =
      absl::StrCat("model { keras: ", model, " }\ntrain {\n", train,
                   "  shuffle { buffer: ", kShuffleBuffer, " }\n}\n");
  if (!job.validation.empty()) {
    ASSIGN_OR_RETURN(
        const std::string validation,
        Source("validation", job.validation, "validation_label", job));
    absl::StrAppend(&text, "validation {\n", validation, "}\n");
  } else if (!job.validation_label.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--validation_label=", job.validation_label, " needs --validation"));
  }
  if (job.batch_size.has_value()) {
    absl::StrAppend(&text, "batch_size: ", *job.batch_size, "\n");
  }
  if (job.epochs.has_value()) {
    absl::StrAppend(&text, "epochs: ", *job.epochs, "\n");
  }
  return text;
}

}  // namespace muster
