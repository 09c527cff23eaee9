#ifndef COMMON_LEARN_TRAIN_JOB_JOB_FIELDS_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_FIELDS_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace google::protobuf {
class Descriptor;
}  // namespace google::protobuf

namespace muster {

// What is wrong with a field, and where its name or value begins. Line and
// column count from 0, and a tab ends at a multiple of 8 columns, as in errors
// of protobuf.
struct JobFieldMistake {
  int line = 0;
  int column = 0;
  std::string message;
};

// A text in protobuf's text format, compared with its schema.
struct JobFields {
  // The text in protobuf's spelling, of which each place is at the same line
  // and column.
  std::string text;
  std::optional<JobFieldMistake> mistake;  // The first one.
};

// Finds what protobuf's parser passes over or reports without the field that
// was written: an unknown or reserved field, with the message that has a field
// of this name; a name or number that the enum of a field does not have. Names
// of enum values may have quotes, lower-case letters, and "-" or nothing in
// place of "_". Reading ends where the syntax is wrong, which protobuf's parser
// reports.
JobFields CheckJobFields(absl::string_view text,
                         const google::protobuf::Descriptor& type);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_FIELDS_H_
