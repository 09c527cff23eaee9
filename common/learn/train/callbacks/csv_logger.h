#ifndef COMMON_LEARN_TRAIN_CALLBACKS_CSV_LOGGER_H_
#define COMMON_LEARN_TRAIN_CALLBACKS_CSV_LOGGER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/io/records/byte_sink.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/history.h"

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
// An existing file is not changed before the first epoch has ended. Training
// that resumes keeps the lines of the epochs before, with `append` and without,
// and replaces those of epochs that are trained again.
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
  absl::Status OnChiefChange(Model& model) override;
  absl::Status OnEpochEnd(Model& model, int epoch, Logs& logs) override;
  absl::Status OnTrainEnd(Model& model, const Logs& logs) override;
  bool watches_steps() const override { return false; }
  std::vector<std::string> output_folders() const override;

  CallbackState SaveState() const override;
  //   kInvalidArgument  `state` is not one of this callback
  absl::Status RestoreState(Model& model, const CallbackState& state) override;

 private:
  bool is_object() const;
  // Sets what is kept of an existing file, and opens it to append to it.
  absl::Status Open();
  absl::Status OpenObject();
  // Removes what is behind the part of the file that is kept.
  absl::Status DropRest();
  std::string HeaderRow() const;
  // Errors are logged.
  void Write(const std::string& rows);
  std::string Row(const std::vector<std::string>& cells) const;
  // Stops logging after an error.
  void Note(const absl::Status& status);

  const CsvLoggerOptions options_;
  bool is_logging_ = false;
  std::unique_ptr<ByteSink> file_;  // Of an object, null before the first row.
  // The part of the file that is kept, and then what has been written.
  int64_t kept_bytes_ = 0;
  std::string kept_content_;        // The same, of an object.
  bool has_rest_ = false;           // DropRest() is to be called.
  std::string last_row_;            // Also on workers that do not log.
  std::vector<std::string> names_;  // Names of the columns, without "epoch".
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CALLBACKS_CSV_LOGGER_H_
