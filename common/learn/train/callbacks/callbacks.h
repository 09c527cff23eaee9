#ifndef COMMON_LEARN_TRAIN_CALLBACKS_CALLBACKS_H_
#define COMMON_LEARN_TRAIN_CALLBACKS_CALLBACKS_H_

#include <memory>
#include <ostream>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/callbacks/backup_and_restore.h"
#include "common/learn/train/callbacks/csv_logger.h"
#include "common/learn/train/callbacks/early_stopping.h"
#include "common/learn/train/callbacks/external_callbacks.h"
#include "common/learn/train/callbacks/model_checkpoint.h"
#include "common/learn/train/callbacks/reduce_lr_on_plateau.h"
#include "common/learn/train/callbacks/swap_ema_weights.h"
#include "common/learn/train/callbacks/tensor_board.h"
#include "common/learn/train/callbacks/terminate_on_nan.h"

// Every callback that a file can name: the header of each, and a table for
// code that makes callbacks from what a file says. LearningRateScheduler and
// LambdaCallback hold functions, which a file cannot.
namespace muster {

// A kind of callback.
struct CallbackKind {
  // The case of JobCallback.kind.
  absl::string_view name;
  absl::string_view keras_class;  // keras.callbacks.<keras_class>
  // `output` is where it prints, borrowed; null: standard output.
  //   kInvalidArgument  an option is invalid; names it
  //   kUnimplemented    an option asks for what there is not
  absl::StatusOr<std::unique_ptr<Callback>> (*make)(ConfigVisitor& visitor,
                                                    std::ostream* output);
};

// Makes a callback of the options that the visitor sets. Those that print have
// an option `output`, and those with invalid combinations have CheckOptions().
template <typename Made, typename Options>
absl::StatusOr<std::unique_ptr<Callback>> MakeCallback(ConfigVisitor& visitor,
                                                       std::ostream* output) {
  Options options;
  if constexpr (requires { options.output; }) options.output = output;
  options.VisitConfig(visitor);
  if constexpr (requires { Made::CheckOptions(options); }) {
    absl::Status status = Made::CheckOptions(options);
    if (!status.ok()) return status;
  }
  return std::make_unique<Made>(std::move(options));
}

inline constexpr CallbackKind kCallbackKinds[] = {
    {"early_stopping", "EarlyStopping",
     MakeCallback<EarlyStopping, EarlyStoppingOptions>},
    {"reduce_lr_on_plateau", "ReduceLROnPlateau",
     MakeCallback<ReduceLROnPlateau, ReduceLROnPlateauOptions>},
    {"csv_logger", "CSVLogger", MakeCallback<CsvLogger, CsvLoggerOptions>},
    {"swap_ema_weights", "SwapEMAWeights",
     MakeCallback<SwapEmaWeights, SwapEmaWeightsOptions>},
    {"terminate_on_nan", "TerminateOnNaN",
     MakeCallback<TerminateOnNan, TerminateOnNanOptions>},
    {"tensor_board", "TensorBoard",
     MakeCallback<TensorBoard, TensorBoardOptions>},
    {"model_checkpoint", "ModelCheckpoint",
     MakeCallback<ModelCheckpoint, ModelCheckpointOptions>},
    {"backup_and_restore", "BackupAndRestore",
     MakeCallback<BackupAndRestore, BackupAndRestoreOptions>},
    {"external", "Callback",
     MakeCallback<ExternalCallbacks, ExternalCallbacksOptions>},
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CALLBACKS_CALLBACKS_H_
