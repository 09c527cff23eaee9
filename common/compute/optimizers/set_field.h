#ifndef COMMON_COMPUTE_OPTIMIZERS_SET_FIELD_H_
#define COMMON_COMPUTE_OPTIMIZERS_SET_FIELD_H_

#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace muster {

// Returns the field that is set in the first oneof of `message`; null if none
// is. A descriptor lists the synthetic oneofs of optional fields last.
inline const google::protobuf::FieldDescriptor* SetFieldOfOneof(
    const google::protobuf::Message& message) {
  return message.GetReflection()->GetOneofFieldDescriptor(
      message, message.GetDescriptor()->oneof_decl(0));
}

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_SET_FIELD_H_
