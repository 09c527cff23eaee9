#ifndef COMMON_LEARN_TRAIN_KERAS_KERAS_OBJECT_H_
#define COMMON_LEARN_TRAIN_KERAS_KERAS_OBJECT_H_

#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace muster {

// Keys in the order of the file, which is also Keras'.
using KerasJson = nlohmann::ordered_json;

// Parses a file of JSON. `what` is how errors call it.
//   kInvalidArgument  nested deeper than kNestingDepthMax
//   kDataLoss         no JSON
absl::StatusOr<KerasJson> ParseKerasJson(absl::string_view what,
                                         absl::string_view text);

// The object that keras.saving.serialize_keras_object() writes for a layer, a
// loss and the like:
//
//   {"module": "keras.losses", "class_name": "MeanSquaredError",
//    "config": {...}, "registered_name": null}
//   "mse"                                          the same with its defaults
//   {"class_name": "function", "config": "relu"}   a function
struct KerasObject {
  std::string class_name;
  KerasJson config = KerasJson::object();
};

// `place` is how errors call the object.
//   kInvalidArgument  not such an object, or one that the program registered or
//                     defined itself, of which the file has no definition
absl::StatusOr<KerasObject> ParseKerasObject(absl::string_view place,
                                             const KerasJson& json);

// Returns json[key] if it is there; otherwise null.
const KerasJson& FindMember(const KerasJson& json, absl::string_view key);

// Returns the text at `key`; empty if there is none.
std::string TextMember(const KerasJson& json, absl::string_view key);

// A class or function in the one spelling that all its names in Keras have in
// common: "MeanSquaredError" and "mean_squared_error" are "meansquarederror".
// Short names such as "mse" are written out.
std::string CanonicalKerasName(absl::string_view name);

// Returns the entry of a table, like kLossKinds, for a class or function of
// Keras; null if the table lacks it.
template <typename Kind, size_t count>
const Kind* FindKerasKind(const Kind (&kinds)[count], absl::string_view name) {
  const std::string canonical = CanonicalKerasName(name);
  for (const Kind& kind : kinds) {
    if (CanonicalKerasName(kind.name) == canonical) return &kind;
    if constexpr (requires { kind.keras_class; }) {
      if (CanonicalKerasName(kind.keras_class) == canonical) return &kind;
    }
  }
  return nullptr;
}

// The error for a name that a table lacks; names what is near.
absl::Status UnknownKerasName(absl::string_view place, absl::string_view what,
                              absl::string_view name,
                              const std::vector<absl::string_view>& known);

template <typename Kind, size_t count>
std::vector<absl::string_view> NamesOfKinds(const Kind (&kinds)[count]) {
  std::vector<absl::string_view> names;
  for (const Kind& kind : kinds) {
    if constexpr (requires { kind.keras_class; }) {
      names.push_back(kind.keras_class);
    } else {
      names.push_back(kind.name);
    }
  }
  return names;
}

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_KERAS_KERAS_OBJECT_H_
