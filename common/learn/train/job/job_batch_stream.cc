#include "common/learn/train/job/job_batch_stream.h"

#include <unistd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/core/system/log.h"
#include "common/core/system/small_file.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/io/storage/disk.h"
#include "common/learn/train/job/job_data_files.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

using proto::JobData_BatchStream;

constexpr absl::Duration kPollInterval = absl::Milliseconds(5);
constexpr absl::Duration kWarningDelay = absl::Seconds(30);

absl::Status CheckFields(const JobData_BatchStream& stream) {
  const auto refuse = [](absl::string_view field, int64_t minimum,
                         int64_t value) {
    return absl::InvalidArgumentError(absl::StrCat("batch_stream.", field,
                                                   " must be at least ",
                                                   minimum, ", got ", value));
  };
  if (stream.directory().empty()) {
    return absl::InvalidArgumentError(
        "batch_stream.directory is missing; expected a folder");
  }
  if (stream.batch_count() < 1) {
    return refuse("batch_count", 1, stream.batch_count());
  }
  if (stream.feature_count() < 1) {
    return refuse("feature_count", 1, stream.feature_count());
  }
  if (stream.label_count() < 1) {
    return refuse("label_count", 1, stream.label_count());
  }
  if (stream.sample_weight_count() < 0) {
    return refuse("sample_weight_count", 0, stream.sample_weight_count());
  }
  if (stream.has_timeout_seconds() && !(stream.timeout_seconds() > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch_stream.timeout_seconds must be above 0, got ",
                     stream.timeout_seconds()));
  }
  return absl::OkStatus();
}

// The folder of a stream, as its reader sees it.
//
// Thread-safe.
class StreamFolder {
 public:
  explicit StreamFolder(JobData_BatchStream stream)
      : stream_(std::move(stream)),
        timeout_(absl::Seconds(
            stream_.has_timeout_seconds() ? stream_.timeout_seconds() : 3600)) {
  }

  // Returns the examples of a batch; none after the last one, with `types`
  // then.
  absl::StatusOr<Dataset> Batch(int64_t index,
                                const std::vector<TensorType>& types) const {
    ASSIGN_OR_RETURN(const bool exists, Await(index));
    return exists ? BuildNpy(FilesOf(index)) : NoExamples(types);
  }

  // As Batch(), in the order of one pass through the data: tells the writer
  // that the batches before have been read.
  absl::StatusOr<Dataset> NextBatch(int64_t index,
                                    const std::vector<TensorType>& types)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      absl::MutexLock lock(&mutex_);
      is_second_pass_ = is_second_pass_ || index < last_index_;
      last_index_ = index;
      if (is_second_pass_) {
        ASSIGN_OR_RETURN(const int64_t end, NumberIn("end"));
        if (end < 0) return IsReadOnce(index);
        return NoExamples(types);
      }
    }
    if (index > 0) RETURN_IF_ERROR(NoteRead(index));
    return Batch(index, types);
  }

 private:
  static absl::StatusOr<Dataset> NoExamples(
      const std::vector<TensorType>& types) {
    Element none;
    for (const TensorType& type : types) {
      Shape shape = type.shape;
      shape.InsertDim(0, 0);
      none.emplace_back(type.dtype, shape);
    }
    return Dataset::FromTensorSlices(std::move(none));
  }

  absl::Status IsReadOnce(int64_t index) const {
    return absl::FailedPreconditionError(absl::StrCat(
        "batch ", index, " of ", stream_.directory(), " has been read: data ",
        "that are written while training reads them can be read once"));
  }

  // Tells the writer that all batches before `index` have been read.
  absl::Status NoteRead(int64_t index) const {
    return ReplaceFileUnsynced(Disk::Real(),
                               PathOf(absl::StrCat("reader_", getpid())),
                               absl::StrCat(index));
  }

  std::string PathOf(absl::string_view name) const {
    return JoinPath(stream_.directory(), name);
  }
  std::string BatchPath(int64_t index) const {
    return PathOf(absl::StrCat("batch_", index));
  }

  proto::JobData_Npy FilesOf(int64_t index) const {
    int file = 0;
    const auto next_path = [&] {
      return JoinPath(BatchPath(index), absl::StrCat("array_", file++, ".npy"));
    };
    proto::JobData_Npy npy;
    npy.add_features(next_path());
    for (int i = 1; i < stream_.feature_count(); ++i) {
      npy.add_more_features()->add_path(next_path());
    }
    npy.add_labels(next_path());
    for (int i = 1; i < stream_.label_count(); ++i) {
      npy.add_more_labels()->add_path(next_path());
    }
    for (int i = 0; i < stream_.sample_weight_count(); ++i) {
      npy.add_sample_weights()->add_path(next_path());
    }
    return npy;
  }

  // Returns the number in one of the writer's files; -1: there is none.
  absl::StatusOr<int64_t> NumberIn(absl::string_view name) const {
    const std::string path = PathOf(name);
    const absl::StatusOr<std::string> text = ReadSmallFile(path);
    if (absl::IsNotFound(text.status())) return -1;
    RETURN_IF_ERROR(text.status());
    int64_t number;
    if (!absl::SimpleAtoi(*text, &number) || number < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " has \"", *text, "\"; expected a number"));
    }
    return number;
  }

  // Returns whether the stream has batch `index`; none while the writer may
  // still write the batch.
  absl::StatusOr<std::optional<bool>> Find(int64_t index) const {
    if (access(BatchPath(index).c_str(), F_OK) == 0) return true;
    ASSIGN_OR_RETURN(const int64_t end, NumberIn("end"));
    ASSIGN_OR_RETURN(const int64_t removed, NumberIn("removed"));
    if (end >= 0 && (index >= end || index < removed)) return false;
    if (index < removed) return IsReadOnce(index);
    return std::nullopt;
  }

  absl::StatusOr<bool> Await(int64_t index) const {
    Clock* const clock = Clock::Real();
    const absl::Time begin = clock->Now();
    bool has_warned = false;
    while (true) {
      ASSIGN_OR_RETURN(const std::optional<bool> found, Find(index));
      if (found.has_value()) return *found;
      const absl::Duration waited = clock->Now() - begin;
      if (waited >= timeout_) {
        return absl::DeadlineExceededError(absl::StrCat(
            "waited ", absl::FormatDuration(timeout_), " for batch ", index,
            " in ", stream_.directory(),
            ", which the program that draws the batches has not written"));
      }
      if (waited >= kWarningDelay && !has_warned) {
        has_warned = true;
        LOG(WARNING) << "waiting for batch " << index
                     << " from the program that draws the batches, for "
                     << absl::FormatDuration(timeout_) << " at most";
      }
      absl::Mutex mutex;
      absl::MutexLock lock(&mutex);
      bool never = false;
      clock->AwaitWithDeadline(&mutex, absl::Condition(&never),
                               clock->Now() + kPollInterval);
    }
  }

  const JobData_BatchStream stream_;
  const absl::Duration timeout_;
  absl::Mutex mutex_;
  int64_t last_index_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_second_pass_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

absl::StatusOr<Dataset> BuildBatchStream(const JobData_BatchStream& stream) {
  RETURN_IF_ERROR(CheckFields(stream));
  const auto folder = std::make_shared<StreamFolder>(stream);
  ASSIGN_OR_RETURN(const Dataset first, folder->Batch(0, {}));
  const std::vector<TensorType> types = first.element_types();
  if (types.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(stream.directory(), " has no batches"));
  }
  // Each batch is drawn as a whole before the next one is asked for.
  return Dataset::Range(stream.batch_count())
      .Interleave(
          [folder, types](const Element& element) {
            const int64_t index = element[0].scalar<int64_t>();
            absl::StatusOr<Dataset> batch = folder->NextBatch(index, types);
            return batch.ok() ? *std::move(batch) : Dataset(batch.status());
          },
          types);
}

}  // namespace muster
