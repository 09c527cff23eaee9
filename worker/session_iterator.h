#ifndef WORKER_SESSION_ITERATOR_H_
#define WORKER_SESSION_ITERATOR_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/dataset/dataset.h"

namespace muster {

// A worker's iterator over a dataset whose definition the coordinator has sent.
// The dataset is opened by the first Next(), because opening files may take
// long.
//
// Thread-safe. Each element is returned to one caller.
class SessionIterator {
 public:
  SessionIterator(uint32_t iterator_id, std::string serialized_dataset,
                  const InputContext& context, int64_t epoch)
      : iterator_id_(iterator_id),
        context_(context),
        epoch_(epoch),
        serialized_dataset_(std::move(serialized_dataset)) {}

  // Fills `element` with the next element.
  //   kOutOfRange       the dataset has ended
  //   kInvalidArgument  the definition is not a valid dataset
  //   any               from the dataset
  absl::Status Next(Element* element) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Status Open() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint32_t iterator_id_;
  const InputContext context_;
  const int64_t epoch_;
  absl::Mutex mutex_;
  std::string serialized_dataset_ ABSL_GUARDED_BY(mutex_);
  Dataset dataset_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<DatasetIterator> iterator_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // WORKER_SESSION_ITERATOR_H_
