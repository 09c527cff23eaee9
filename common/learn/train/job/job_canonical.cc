#include "common/learn/train/job/job_canonical.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace muster {
namespace {

namespace pb = google::protobuf;
using Locations = pb::TextFormat::ParseInfoTree;

std::string ValueText(const pb::Message& message,
                      const pb::FieldDescriptor& field, int index) {
  std::string text;
  pb::TextFormat::PrintFieldValueToString(message, &field, index, &text);
  return text;
}

class CanonicalWriter {
 public:
  // `line` is where the message begins, for what has no place of its own.
  void WriteMessage(const pb::Message& message, const Locations* locations,
                    const std::string& prefix, int line) {
    std::vector<const pb::FieldDescriptor*> fields;
    const pb::Descriptor& type = *message.GetDescriptor();
    if (type.map_key() != nullptr) {
      // The entry of a map has a key and a value, also if they are 0.
      fields = {type.map_key(), type.map_value()};
    } else {
      message.GetReflection()->ListFields(message, &fields);
    }
    for (const pb::FieldDescriptor* const field : fields) {
      if (field->full_name() == "muster.proto.TrainingJob.variables") continue;
      int field_line = line;
      int number = 0;  // Of a map's entry, in the sorted order.
      for (const int index : IndicesOf(message, *field)) {
        // A list in brackets has one place.
        if (locations != nullptr) {
          const int found = locations->GetLocation(field, index).line;
          if (found >= 0) field_line = found + 1;
        }
        const std::string path =
            absl::StrCat(prefix, field->name(),
                         index < 0 ? "" : absl::StrCat("[", number++, "]"));
        WriteValue(message, *field, index, locations, path, field_line);
      }
    }
  }

  CanonicalJob Finish() && { return std::move(job_); }

 private:
  // -1 for a field that is not repeated. The entries of a map are sorted.
  static std::vector<int> IndicesOf(const pb::Message& message,
                                    const pb::FieldDescriptor& field) {
    if (!field.is_repeated()) return {-1};
    const pb::Reflection& reflection = *message.GetReflection();
    std::vector<int> indices(reflection.FieldSize(message, &field));
    for (size_t i = 0; i < indices.size(); ++i) {
      indices[i] = static_cast<int>(i);
    }
    if (!field.is_map()) return indices;
    std::sort(indices.begin(), indices.end(), [&](int a, int b) {
      return ValueText(message, field, a) < ValueText(message, field, b);
    });
    return indices;
  }

  void WriteValue(const pb::Message& message, const pb::FieldDescriptor& field,
                  int index, const Locations* locations,
                  const std::string& path, int line) {
    if (field.cpp_type() != pb::FieldDescriptor::CPPTYPE_MESSAGE) {
      return AddLine(absl::StrCat(path, ": ", ValueText(message, field, index)),
                     line);
    }
    const pb::Reflection& reflection = *message.GetReflection();
    const pb::Message& nested =
        index < 0 ? reflection.GetMessage(message, &field)
                  : reflection.GetRepeatedMessage(message, &field, index);
    const size_t line_count = job_.lines.size();
    WriteMessage(nested,
                 locations == nullptr
                     ? nullptr
                     : locations->GetTreeForNested(&field, index),
                 path + ".", line);
    if (job_.lines.size() == line_count) AddLine(path + " {}", line);
  }

  void AddLine(const std::string& text, int line) {
    absl::StrAppend(&job_.text, text, "\n");
    job_.lines.push_back(line);
  }

  CanonicalJob job_;
};

}  // namespace

CanonicalJob CanonicalForm(const pb::Message& job, const Locations* locations) {
  CanonicalWriter writer;
  writer.WriteMessage(job, locations, "", 1);
  CanonicalJob canonical = std::move(writer).Finish();
  if (locations == nullptr) canonical.lines.clear();
  return canonical;
}

void SetCanonicalValue(absl::string_view path, absl::string_view value,
                       CanonicalJob* job) {
  const std::string start = absl::StrCat(path, ": ");
  std::vector<std::string> lines = absl::StrSplit(job->text, '\n');
  for (std::string& line : lines) {
    if (absl::StartsWith(line, start)) line = absl::StrCat(start, value);
  }
  job->text = absl::StrJoin(lines, "\n");
}

}  // namespace muster
