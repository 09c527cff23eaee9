#include "worker/session_iterator.h"

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/dataset/codec/dataset_codec.h"
#include "proto/dataset.pb.h"

namespace muster {

absl::Status SessionIterator::Next(Element* element) {
  absl::MutexLock lock(&mutex_);
  if (iterator_ == nullptr) RETURN_IF_ERROR(Open());
  ASSIGN_OR_RETURN(const bool has_element, iterator_->Next(element));
  if (has_element) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat(
      "the dataset behind iterator ", iterator_id_, " has ended in input ",
      "pipeline ", context_.input_pipeline_id,
      "; Repeat() it, or schedule fewer steps"));
}

absl::Status SessionIterator::Open() {
  proto::Dataset encoded;
  if (!encoded.ParseFromString(serialized_dataset_)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the definition of iterator ", iterator_id_,
                     " is not a valid dataset"));
  }
  ASSIGN_OR_RETURN(dataset_, DecodeDataset(encoded));
  ASSIGN_OR_RETURN(iterator_, dataset_.MakeIterator(context_, epoch_));
  serialized_dataset_.clear();
  return absl::OkStatus();
}

}  // namespace muster
