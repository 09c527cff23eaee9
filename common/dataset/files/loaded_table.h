#ifndef COMMON_DATASET_FILES_LOADED_TABLE_H_
#define COMMON_DATASET_FILES_LOADED_TABLE_H_

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/core/base/status_macros.h"
#include "common/dataset/dataset_node.h"

namespace muster {

// A table that is loaded on first access, and again after an error.
// Thread-safe: other callers wait while it is being loaded.
class LoadedTable {
 public:
  using Loader =
      absl::FunctionRef<absl::StatusOr<std::shared_ptr<const RowTable>>()>;

  absl::StatusOr<std::shared_ptr<const RowTable>> Get(Loader load)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (table_ == nullptr) {
      ASSIGN_OR_RETURN(table_, load());
    }
    return table_;
  }

 private:
  absl::Mutex mutex_;
  std::shared_ptr<const RowTable> table_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // COMMON_DATASET_FILES_LOADED_TABLE_H_
