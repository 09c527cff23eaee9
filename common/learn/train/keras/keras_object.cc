#include "common/learn/train/keras/keras_object.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/core/base/did_you_mean.h"
#include "common/core/base/nesting_depth.h"

namespace muster {
namespace {

// Longer texts of a file are truncated in messages.
constexpr size_t kQuoteLengthMax = 200;

std::string Quoted(const KerasJson& json) {
  std::string text =
      json.dump(-1, ' ', false, KerasJson::error_handler_t::replace);
  if (text.size() > kQuoteLengthMax) {
    text.resize(kQuoteLengthMax);
    text += "...";
  }
  return text;
}

bool IsKerasModule(absl::string_view module) {
  // The package tf_keras is Keras 2.
  absl::ConsumePrefix(&module, "tf_");
  return module.empty() || module == "keras" ||
         absl::StartsWith(module, "keras.");
}

// The layers that Muster's Python package writes into files.
bool IsMusterModule(absl::string_view module) {
  return absl::StartsWith(module, "muster.");
}

}  // namespace

absl::StatusOr<KerasJson> ParseKerasJson(absl::string_view what,
                                         absl::string_view text) {
  if (const int depth = JsonNestingDepth(text); depth > kNestingDepthMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " is nested ", depth, " levels deep; at most ",
                     kNestingDepthMax, " are read"));
  }
  KerasJson json = KerasJson::parse(text.begin(), text.end(), nullptr,
                                    /*allow_exceptions=*/false);
  if (!json.is_discarded()) return json;
  return absl::DataLossError(absl::StrCat(what, " is no JSON"));
}

const KerasJson& FindMember(const KerasJson& json, absl::string_view key) {
  static const auto& kNull = *new KerasJson();
  if (!json.is_object()) return kNull;
  const auto found = json.find(std::string(key));
  return found == json.end() ? kNull : *found;
}

std::string TextMember(const KerasJson& json, absl::string_view key) {
  const KerasJson& member = FindMember(json, key);
  return member.is_string() ? member.get<std::string>() : "";
}

absl::StatusOr<KerasObject> ParseKerasObject(absl::string_view place,
                                             const KerasJson& json) {
  if (json.is_string()) {
    return KerasObject{.class_name = json.get<std::string>()};
  }
  KerasObject object{.class_name = TextMember(json, "class_name")};
  const KerasJson& config = FindMember(json, "config");
  if (object.class_name.empty() ||
      !(config.is_object() || config.is_string())) {
    return absl::InvalidArgumentError(absl::StrCat(
        place, ": expected {\"class_name\": ..., \"config\": {...}}, got ",
        Quoted(json)));
  }
  const std::string module = TextMember(json, "module");
  const bool is_function = object.class_name == "function";
  if (!(IsKerasModule(module) || IsMusterModule(module) ||
        (is_function && module == "builtins")) ||
      absl::StrContains(TextMember(json, "registered_name"), ">")) {
    return absl::InvalidArgumentError(absl::StrCat(
        place, ": ", module, ".", object.class_name,
        " is not part of Keras, and the file has no definition of it; replace "
        "it by layers of Keras"));
  }
  if (config.is_string()) {
    object.class_name = config.get<std::string>();
  } else {
    object.config = config;
  }
  return object;
}

std::string CanonicalKerasName(absl::string_view name) {
  std::string canonical;
  for (const char c : name) {
    if (c != '_') canonical += absl::ascii_tolower(c);
  }
  static constexpr struct {
    absl::string_view name;
    absl::string_view full;
  } kShortNames[] = {
      {"mse", "meansquarederror"},
      {"mae", "meanabsoluteerror"},
      {"mape", "meanabsolutepercentageerror"},
      {"msle", "meansquaredlogarithmicerror"},
      {"bce", "binarycrossentropy"},
      {"kld", "kldivergence"},
      {"kullbackleiblerdivergence", "kldivergence"},
      {"zero", "zeros"},
      {"one", "ones"},
      {"uniform", "randomuniform"},
      {"normal", "randomnormal"},
      // The class in files before Keras 3.4.
      {"orthogonalinitializer", "orthogonal"},
      {"swish", "silu"},
      {"hardswish", "hardsilu"},
      {"cosineproximity", "cosinesimilarity"},
  };
  for (const auto& entry : kShortNames) {
    if (entry.name == canonical) return std::string(entry.full);
  }
  return canonical;
}

absl::Status UnknownKerasName(absl::string_view place, absl::string_view what,
                              absl::string_view name,
                              const std::vector<absl::string_view>& known) {
  return absl::InvalidArgumentError(absl::StrCat(
      place, ": Muster has no ", what, " ", name, DidYouMean(name, known),
      "; there are ", absl::StrJoin(known, ", ")));
}

}  // namespace muster
