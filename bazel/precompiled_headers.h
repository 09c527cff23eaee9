#ifndef BAZEL_PRECOMPILED_HEADERS_H_
#define BAZEL_PRECOMPILED_HEADERS_H_

// System headers that many sources include. bazel/precompile_headers.sh parses
// them once for all sources; every source still includes what it uses.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/extension_set.h"
#include "google/protobuf/generated_enum_reflection.h"
#include "google/protobuf/generated_message_reflection.h"
#include "google/protobuf/generated_message_util.h"
#include "google/protobuf/map.h"
#include "google/protobuf/map_entry.h"
#include "google/protobuf/map_field_inl.h"
#include "google/protobuf/message.h"
#include "google/protobuf/repeated_field.h"
#include "google/protobuf/unknown_field_set.h"
#include "nlohmann/json.hpp"

// Templates that most sources would instantiate, here for the extents of
// shapes and for JSON.
inline void InstantiateTemplates() {
  absl::InlinedVector<int64_t, 4> extents;
  extents.push_back(1);
  extents.insert(extents.end(), extents.begin(), extents.end());
  absl::InlinedVector<int64_t, 4> copy(extents.begin(), extents.end());
  if (copy != extents) copy = extents;
  extents = std::move(copy);
}

inline void InstantiateJson() {
  nlohmann::json value = nlohmann::json::parse("{}", nullptr, false);
  value["name"] = std::string("text");
  value["number"] = int64_t{1};
  value["list"] = nlohmann::json::array({1.0, true, nullptr});
  for (const auto& [name, member] : value.items()) {
    if (member.is_string()) value[name] = member.get<std::string>();
    if (member.is_number()) value[name] = member.get<double>();
    if (member.is_boolean()) value[name] = member.get<bool>();
    if (member.is_number_integer()) value[name] = member.get<int64_t>();
  }
  if (value.contains("name") && value.find("name") != value.end()) {
    value.erase("name");
  }
  value.dump();
}

#endif  // BAZEL_PRECOMPILED_HEADERS_H_
