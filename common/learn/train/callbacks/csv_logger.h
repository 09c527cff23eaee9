#ifndef COMMON_LEARN_TRAIN_CALLBACKS_CSV_LOGGER_H_
#define COMMON_LEARN_TRAIN_CALLBACKS_CSV_LOGGER_H_

#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/learn/train/callback.h"
#include "common/learn/train/history.h"

namespace muster {

struct CsvLoggerOptions {
  std::string filename;
  std::string separator = ",";  // One character.
  // Goes on behind what the file holds, without another header.
  bool append = false;
};

// Writes a line for each epoch: its number from 0 and its logs, sorted by name.
// The first epoch says which columns there are; where it has no validation
// there are columns for it all the same. What an epoch does not have is "NA".
//
// A disk that takes no more costs the lines, not the training: a warning names
// the file, once.
//
// Equivalent to: keras.callbacks.CSVLogger.
class CsvLogger final : public Callback {
 public:
  explicit CsvLogger(CsvLoggerOptions options);

  //   kInvalidArgument  an option makes no sense; names it
  static absl::Status CheckOptions(const CsvLoggerOptions& options);

  // Besides what CheckOptions() says, the system's reason why the file cannot
  // be opened, with its name. Makes its folder if need be.
  absl::Status OnTrainBegin(Model& model) override;
  absl::Status OnEpochEnd(Model& model, int epoch, const Logs& logs) override;
  absl::Status OnTrainEnd(Model& model, const Logs& logs) override;
  std::vector<std::string> output_folders() const override;

 private:
  void WriteRow(const std::vector<std::string>& cells);

  const CsvLoggerOptions options_;
  std::ofstream file_;
  bool needs_header_ = true;
  std::vector<std::string> names_;  // Of the columns, without "epoch".
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CALLBACKS_CSV_LOGGER_H_
