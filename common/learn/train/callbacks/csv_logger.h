#ifndef COMMON_LEARN_TRAIN_CALLBACKS_CSV_LOGGER_H_
#define COMMON_LEARN_TRAIN_CALLBACKS_CSV_LOGGER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/io/records/byte_sink.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/train/callback.h"
#include "common/learn/train/history.h"

namespace muster {

struct CsvLoggerOptions {
  std::string filename;         // Or the URL of an object.
  std::string separator = ",";  // One character.
  // Appends to an existing file, without another header.
  bool append = false;

  void VisitConfig(ConfigVisitor& visitor);
};

// Writes one line per epoch: its number from 0 and its logs, sorted by name.
// The first epoch defines the columns; if it has no validation, columns for it
// are added nevertheless. Missing values are "NA".
//
// A disk that is full loses lines but does not end training: one warning names
// the file. An object is replaced by a longer one at most every 30 s, and when
// training ends.
//
// Equivalent to: keras.callbacks.CSVLogger.
class CsvLogger final : public Callback {
 public:
  explicit CsvLogger(CsvLoggerOptions options);

  //   kInvalidArgument  an option is invalid; names it
  static absl::Status CheckOptions(const CsvLoggerOptions& options);

  // In addition to CheckOptions(): the system's error if the file cannot be
  // opened, with its name. Creates the folder if it is missing.
  absl::Status OnTrainBegin(Model& model) override;
  absl::Status OnEpochEnd(Model& model, int epoch, const Logs& logs) override;
  absl::Status OnTrainEnd(Model& model, const Logs& logs) override;
  bool watches_steps() const override { return false; }
  std::vector<std::string> output_folders() const override;

 private:
  // Sets needs_header_.
  absl::StatusOr<std::unique_ptr<ByteSink>> OpenObject();
  absl::StatusOr<std::unique_ptr<ByteSink>> OpenFile();
  std::string Row(const std::vector<std::string>& cells) const;
  // Stops logging after an error.
  void Note(const absl::Status& status);

  const CsvLoggerOptions options_;
  std::unique_ptr<ByteSink> file_;  // Null when nothing is logged.
  bool needs_header_ = true;
  std::vector<std::string> names_;  // Names of the columns, without "epoch".
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CALLBACKS_CSV_LOGGER_H_
