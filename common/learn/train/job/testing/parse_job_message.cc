#include "common/learn/train/job/testing/parse_job_message.h"

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "common/learn/train/job/job_schema.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"

namespace muster {

bool ParseJobMessage(absl::string_view text,
                     google::protobuf::Message* generated) {
  const std::unique_ptr<google::protobuf::Message> message =
      NewJobMessage(generated->GetDescriptor()->name());
  if (!google::protobuf::TextFormat::ParseFromString(std::string(text),
                                                     message.get())) {
    return false;
  }
  CopyFromKinds(*message, generated);
  return true;
}

}  // namespace muster
