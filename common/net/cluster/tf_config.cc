#include "common/net/cluster/tf_config.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/core/base/did_you_mean.h"
#include "common/core/base/nesting_depth.h"
#include "common/core/base/status_macros.h"
#include "nlohmann/json.hpp"

namespace muster {
namespace {

using internal::Invalid;

using Json = nlohmann::json;

// Linux limits one environment variable to less than this.
constexpr size_t kTextLengthMax = size_t{1} << 20;
constexpr size_t kExcerptLengthMax = 32;
constexpr int kIndexMax = 1'000'000;

constexpr absl::string_view kExample =
    "{\"cluster\":{\"worker\":[\"host:port\",...]},"
    "\"task\":{\"type\":\"worker\",\"index\":0}}";

// Returns the value as text, shortened for one line.
std::string Quote(const Json& value) {
  const std::string text =
      value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() <= kExcerptLengthMax) return text;
  return absl::StrCat(text.substr(0, kExcerptLengthMax), "...");
}

// Escapes characters that a terminal would not show.
std::string Printable(absl::string_view text) {
  std::string shown;
  for (const char& c : text) {
    if (absl::ascii_isprint(c)) {
      shown.push_back(c);
    } else {
      shown += absl::CHexEscape(absl::string_view(&c, 1));
    }
  }
  return shown;
}

// Returns a hint if the JSON error at `at` is a common mistake.
std::string LikelyMistake(absl::string_view text, size_t at) {
  if (at >= text.size()) return "";
  const absl::string_view before =
      absl::StripTrailingAsciiWhitespace(text.substr(0, at));
  const bool closes = text[at] == '}' || text[at] == ']';
  if (!closes || before.empty() || before.back() != ',') return "";
  return absl::StrCat("; remove the comma before the \"",
                      std::string(1, text[at]), "\"");
}

std::string QuotingHint(absl::string_view text) {
  if (text.find('"') != absl::string_view::npos) return "";
  if (text.find('\'') != absl::string_view::npos) {
    return "; JSON requires double quotes";
  }
  return "; it has no double quotes, which a shell removes unless the whole "
         "value is in single quotes: TF_CONFIG='{\"cluster\":...}'";
}

std::string KeysOf(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) {
    keys.push_back(
        absl::StrCat("\"", absl::CHexEscape(key.substr(0, 32)), "\""));
  }
  return keys.empty() ? "no key" : absl::StrJoin(keys, ", ");
}

// Returns the parser's message without the prefix of the library.
absl::string_view ReasonOf(absl::string_view what) {
  constexpr absl::string_view kPrefixEnd = ": ";
  const size_t begin = what.find(kPrefixEnd);
  return begin == absl::string_view::npos
             ? what
             : what.substr(begin + kPrefixEnd.size());
}

// Receives each key as it is parsed, because the resulting object keeps only
// the last of duplicate keys.
class DuplicateKeyFinder {
 public:
  bool operator()(int /*depth*/, Json::parse_event_t event,
                  const Json& parsed) {
    if (event == Json::parse_event_t::object_start) open_.emplace_back();
    if (event == Json::parse_event_t::object_end) open_.pop_back();
    if (event == Json::parse_event_t::key && !open_.empty() &&
        !open_.back().insert(parsed.get<std::string>()).second &&
        duplicate_.empty()) {
      duplicate_ = parsed.get<std::string>();
    }
    return true;
  }

  const std::string& duplicate() const { return duplicate_; }

 private:
  std::vector<std::set<std::string>> open_;
  std::string duplicate_;
};

absl::StatusOr<Json> ParseJson(absl::string_view text) {
  if (text.size() > kTextLengthMax) {
    return Invalid("has ", text.size(), " bytes; expected at most ",
                   kTextLengthMax);
  }
  if (const int depth = JsonNestingDepth(text); depth > kNestingDepthMax) {
    return Invalid("is nested ", depth, " levels deep; expected at most ",
                   kNestingDepthMax);
  }
  DuplicateKeyFinder finder;
  Json json;
  // The library throws exceptions; none leaves this function.
  try {
    json = Json::parse(text.begin(), text.end(), std::ref(finder));
  } catch (const Json::parse_error& error) {
    const size_t at = error.byte == 0 ? 0 : error.byte - 1;
    const size_t begin = at < kExcerptLengthMax ? 0 : at - kExcerptLengthMax;
    const absl::string_view before =
        text.substr(begin, std::min(at, text.size()) - begin);
    return Invalid("is not JSON at character ", error.byte, ", after `",
                   Printable(before), "`: ", Printable(ReasonOf(error.what())),
                   LikelyMistake(text, at), QuotingHint(text));
  } catch (const Json::exception& error) {
    return Invalid("is not JSON: ", absl::CHexEscape(error.what()));
  }
  if (!finder.duplicate().empty()) {
    return Invalid("has the key \"",
                   absl::CHexEscape(finder.duplicate().substr(0, 32)),
                   "\" twice in one object; keep one of them");
  }
  if (!json.is_object()) {
    return Invalid("is ", json.type_name(), " ", Quote(json),
                   "; expected an object: ", kExample);
  }
  return json;
}

// Returns the value at `key`; null counts as absent. If the key is absent but a
// misspelling of it is present, returns an error instead of ignoring it
// silently.
absl::StatusOr<const Json*> Find(const Json& object, absl::string_view where,
                                 absl::string_view key) {
  const auto it = object.find(std::string(key));
  if (it != object.end() && !it->is_null()) return &*it;
  for (const auto& [other, value] : object.items()) {
    const std::string hint = DidYouMean(other, {key});
    if (hint.empty()) continue;
    return Invalid(where, "has the key \"", absl::CHexEscape(other), "\"",
                   hint);
  }
  return nullptr;
}

absl::StatusOr<std::string> ParseAddressEntry(absl::string_view where,
                                              const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return Invalid(where, " is ", Quote(value),
                 "; write the address as a string, \"host:port\"");
}

absl::StatusOr<int> ParseIndexText(absl::string_view text) {
  int index = 0;
  if (!absl::SimpleAtoi(text, &index) || index > kIndexMax) {
    return Invalid("no index");
  }
  return index;
}

absl::StatusOr<JobSpec> ParseJob(absl::string_view where, const Json& value) {
  JobSpec job;
  if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i) {
      ASSIGN_OR_RETURN(
          job.addresses[static_cast<int>(i)],
          ParseAddressEntry(absl::StrCat(where, "[", i, "]"), value[i]));
    }
    return job;
  }
  if (value.is_object()) {
    job.sparse = true;
    for (const auto& [key, address] : value.items()) {
      const absl::StatusOr<int> index = ParseIndexText(key);
      if (!index.ok()) {
        return Invalid(where, " has the key \"",
                       absl::CHexEscape(key.substr(0, 32)),
                       "\"; write a map as {\"index\":\"host:port\"}, for "
                       "example {\"1\":\"h1:2222\"}");
      }
      ASSIGN_OR_RETURN(
          job.addresses[*index],
          ParseAddressEntry(absl::StrCat(where, "[", key, "]"), address));
    }
    return job;
  }
  return Invalid(where, " is ", Quote(value),
                 "; write a list, [\"host:port\",...], or a map, "
                 "{\"0\":\"host:port\"}");
}

absl::StatusOr<ClusterSpec> ParseCluster(const Json& value) {
  if (!value.is_object()) {
    return Invalid("cluster is ", Quote(value),
                   "; write an object, {\"worker\":[\"host:port\",...]}");
  }
  std::map<TaskType, JobSpec> jobs;
  for (const auto& [key, job] : value.items()) {
    const absl::StatusOr<TaskType> type = ParseTaskType(key);
    if (!type.ok()) {
      return Invalid("cluster has an unknown role: ", type.status().message());
    }
    if (jobs.contains(*type)) {
      return Invalid(
          "cluster has both \"chief\" and \"master\", which are names of the "
          "same role; keep \"chief\"");
    }
    ASSIGN_OR_RETURN(jobs[*type], ParseJob(absl::StrCat("cluster.", key), job));
  }
  return ClusterSpec::Create(std::move(jobs));
}

absl::StatusOr<int> ParseTaskIndex(const Json& value) {
  if (value.is_number_integer() || value.is_string()) {
    const std::string text =
        value.is_string() ? value.get<std::string>() : value.dump();
    const absl::StatusOr<int> index = ParseIndexText(text);
    if (index.ok() && *index < 0) {
      return Invalid("task.index is ", *index, "; tasks are numbered from 0");
    }
    if (index.ok()) return index;
  }
  return Invalid("task.index is ", Quote(value),
                 "; write a whole number, counted from 0");
}

absl::StatusOr<TaskId> ParseTask(const Json& value) {
  if (!value.is_object()) {
    return Invalid("task is ", Quote(value),
                   "; write an object, {\"type\":\"worker\",\"index\":0}");
  }
  TaskId task;
  ASSIGN_OR_RETURN(const Json* type, Find(value, "task ", "type"));
  if (type == nullptr) {
    return Invalid(
        "task has no \"type\", only ", KeysOf(value),
        "; add the role of this process, for example \"type\":\"worker\"");
  }
  if (!type->is_string()) {
    return Invalid("task.type is ", Quote(*type),
                   "; write the role as a string, \"worker\"");
  }
  const absl::StatusOr<TaskType> role = ParseTaskType(type->get<std::string>());
  if (!role.ok()) {
    return Invalid("task.type: ", role.status().message());
  }
  task.type = *role;
  ASSIGN_OR_RETURN(const Json* index, Find(value, "task ", "index"));
  if (index == nullptr) {
    return Invalid("task has no \"index\", only ", KeysOf(value),
                   "; add the index of this ", TaskTypeName(task.type),
                   ", counted from 0: \"index\":0");
  }
  ASSIGN_OR_RETURN(task.index, ParseTaskIndex(*index));
  return task;
}

absl::Status CheckRpcLayer(const Json& root) {
  ASSIGN_OR_RETURN(const Json* layer, Find(root, "", "rpc_layer"));
  if (layer == nullptr) return absl::OkStatus();
  if (layer->is_string() && (*layer == "grpc" || *layer == "")) {
    return absl::OkStatus();
  }
  return Invalid("rpc_layer is ", Quote(*layer),
                 "; \"grpc\" is the only one supported, and the default");
}

absl::StatusOr<ClusterConfig> FromJson(const Json& root) {
  ClusterConfig config;
  RETURN_IF_ERROR(CheckRpcLayer(root));
  ASSIGN_OR_RETURN(const Json* cluster, Find(root, "", "cluster"));
  if (cluster != nullptr) {
    ASSIGN_OR_RETURN(config.cluster, ParseCluster(*cluster));
  }
  ASSIGN_OR_RETURN(const Json* task, Find(root, "", "task"));
  if (task != nullptr) {
    ASSIGN_OR_RETURN(config.task, ParseTask(*task));
  } else if (!config.cluster.empty()) {
    return Invalid(
        "has a cluster but no \"task\"; add the task of this process: "
        "\"task\":{\"type\":\"",
        TaskTypeName(config.cluster.jobs().begin()->first), "\",\"index\":0}");
  }
  const bool needs_cluster =
      task != nullptr && config.task.type != TaskType::kEvaluator;
  if (cluster == nullptr && needs_cluster) {
    return Invalid(
        "has a \"task\" but no \"cluster\"; add the tasks of the cluster: "
        "\"cluster\":{\"worker\":[\"host:port\",...],...}. To train in one "
        "process, unset it");
  }
  RETURN_IF_ERROR(CheckTaskIsInCluster(config));
  return config;
}

}  // namespace

absl::StatusOr<ClusterConfig> ParseTfConfig(absl::string_view text,
                                            absl::string_view source) {
  if (absl::StripAsciiWhitespace(text).empty()) return ClusterConfig();
  const absl::StatusOr<Json> root = ParseJson(text);
  if (!root.ok()) return Invalid(source, " ", root.status().message());
  absl::StatusOr<ClusterConfig> config = FromJson(*root);
  if (!config.ok()) return Invalid(source, ": ", config.status().message());
  config->source = std::string(source);
  return config;
}

}  // namespace muster
