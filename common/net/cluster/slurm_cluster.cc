#include "common/net/cluster/slurm_cluster.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/core/base/status_macros.h"
#include "common/net/cluster/address.h"

namespace muster {
namespace {

constexpr size_t kNamesMax = 65536;
// Numbers of at most this many digits fit into 64 bits.
constexpr size_t kDigitsMax = 18;

absl::Status BadHostlist(absl::string_view part, absl::string_view problem) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", absl::CHexEscape(part.substr(0, 64)), "\" ", problem));
}

bool ParseNumber(absl::string_view text, int64_t* number) {
  if (text.empty() || text.size() > kDigitsMax) return false;
  for (const char c : text) {
    if (!absl::ascii_isdigit(c)) return false;
  }
  return absl::SimpleAtoi(text, number);
}

// Expands "0-3,07", the content of brackets.
absl::StatusOr<std::vector<std::string>> ExpandRanges(
    absl::string_view ranges) {
  std::vector<std::string> numbers;
  for (absl::string_view range : absl::StrSplit(ranges, ',')) {
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(range, absl::MaxSplits('-', 1));
    const bool is_single = !range.empty() && ends.first.size() == range.size();
    int64_t first = 0;
    int64_t last = 0;
    if (!ParseNumber(ends.first, &first) ||
        !ParseNumber(is_single ? ends.first : ends.second, &last) ||
        last < first) {
      return BadHostlist(range,
                         "is no range of ascending numbers, as in [0-3,07]");
    }
    if (static_cast<uint64_t>(last - first) >= kNamesMax - numbers.size()) {
      return BadHostlist(range,
                         absl::StrCat("names more than ", kNamesMax, " hosts"));
    }
    const int width = static_cast<int>(ends.first.size());
    for (int64_t number = first; number <= last; ++number) {
      numbers.push_back(absl::StrFormat("%0*d", width, number));
    }
  }
  return numbers;
}

// Replaces `names` with all combinations of a name and a suffix.
absl::Status Append(const std::vector<std::string>& suffixes,
                    absl::string_view entry, std::vector<std::string>* names) {
  if (names->size() * suffixes.size() > kNamesMax) {
    return BadHostlist(entry,
                       absl::StrCat("names more than ", kNamesMax, " hosts"));
  }
  std::vector<std::string> result;
  result.reserve(names->size() * suffixes.size());
  for (const std::string& name : *names) {
    for (const std::string& suffix : suffixes) result.push_back(name + suffix);
  }
  *names = std::move(result);
  return absl::OkStatus();
}

// Expands "rack[0-1]n[08-09]", an entry without commas outside brackets.
absl::StatusOr<std::vector<std::string>> ExpandEntry(absl::string_view entry) {
  if (entry.empty()) return BadHostlist(entry, "is an empty host name");
  std::vector<std::string> names = {""};
  absl::string_view rest = entry;
  while (!rest.empty()) {
    const size_t open = rest.find('[');
    const absl::string_view text = rest.substr(0, open);
    if (text.find(']') != absl::string_view::npos) {
      return BadHostlist(entry, "has a \"]\" without a \"[\"");
    }
    RETURN_IF_ERROR(Append({std::string(text)}, entry, &names));
    if (open == absl::string_view::npos) break;
    const size_t close = rest.find(']', open);
    if (close == absl::string_view::npos) {
      return BadHostlist(entry, "has a \"[\" without a \"]\"");
    }
    ASSIGN_OR_RETURN(const std::vector<std::string> numbers,
                     ExpandRanges(rest.substr(open + 1, close - open - 1)));
    RETURN_IF_ERROR(Append(numbers, entry, &names));
    rest.remove_prefix(close + 1);
  }
  return names;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandHostlist(
    absl::string_view list) {
  std::vector<std::string> names;
  size_t begin = 0;
  bool is_in_brackets = false;
  for (size_t at = 0; at <= list.size(); ++at) {
    if (at < list.size() && list[at] == '[') is_in_brackets = true;
    if (at < list.size() && list[at] == ']') is_in_brackets = false;
    const bool ends_entry =
        at == list.size() || (list[at] == ',' && !is_in_brackets);
    if (!ends_entry) continue;
    const absl::string_view entry = list.substr(begin, at - begin);
    ASSIGN_OR_RETURN(std::vector<std::string> expanded, ExpandEntry(entry));
    if (names.size() + expanded.size() > kNamesMax) {
      return BadHostlist(list,
                         absl::StrCat("names more than ", kNamesMax, " hosts"));
    }
    for (std::string& name : expanded) names.push_back(std::move(name));
    begin = at + 1;
  }
  return names;
}

namespace {

using internal::Invalid;

constexpr char kNodes[] = "SLURM_STEP_NODELIST";
constexpr char kTasksPerNode[] = "SLURM_STEP_TASKS_PER_NODE";
constexpr char kTaskCount[] = "SLURM_STEP_NUM_TASKS";
constexpr char kRank[] = "SLURM_PROCID";
constexpr char kNodeIndex[] = "SLURM_NODEID";
constexpr char kLocalIndex[] = "SLURM_LOCALID";
constexpr char kReservedPorts[] = "SLURM_STEP_RESV_PORTS";
constexpr char kJobId[] = "SLURM_JOB_ID";
constexpr char kStepId[] = "SLURM_STEP_ID";

// All ranges lie below the ports that the system uses for outgoing connections.
// The batch script of `launch --slurm` looks for free ports in the same ranges.
constexpr int kFirstPort = 20000;
constexpr int kRangeWidth = 128;
constexpr uint64_t kRangeCount = 99;
constexpr uint64_t kRangesBetweenJobs = 31;
constexpr int kPortWithoutJob = 8888;

// Where a rank runs.
struct Place {
  int node_index = 0;
  int local_index = 0;  // The index among the ranks of that node.
};

absl::StatusOr<std::string> Text(const char* name,
                                 EnvironmentLookup environment) {
  const char* const value = environment(name);
  if (value != nullptr && *value != '\0') return std::string(value);
  return Invalid(name,
                 " is not set; start every task with srun, which sets it");
}

absl::Status NotANumber(absl::string_view name, absl::string_view value,
                        absl::string_view expected) {
  return Invalid(name, " is \"", absl::CHexEscape(value.substr(0, 64)),
                 "\"; expected ", expected);
}

absl::StatusOr<int> Number(const char* name, EnvironmentLookup environment) {
  ASSIGN_OR_RETURN(const std::string value, Text(name, environment));
  int number = 0;
  if (absl::SimpleAtoi(value, &number) && number >= 0 &&
      number <= kClusterTasksMax) {
    return number;
  }
  return NotANumber(name, value,
                    absl::StrCat("a number from 0 to ", kClusterTasksMax));
}

// Parses "2(x3),1" into {2, 2, 2, 1}.
absl::StatusOr<std::vector<int>> ParseTasksPerNode(absl::string_view text) {
  std::vector<int> counts;
  for (absl::string_view entry : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(entry, absl::MaxSplits("(x", 1));
    const bool is_repeated = parts.first.size() != entry.size();
    absl::string_view repetitions = parts.second;
    int count = 0;
    int repeated = 1;
    const bool is_number =
        absl::SimpleAtoi(parts.first, &count) && count > 0 &&
        count <= kClusterTasksMax &&
        (!is_repeated || (absl::ConsumeSuffix(&repetitions, ")") &&
                          absl::SimpleAtoi(repetitions, &repeated) &&
                          repeated > 0 && repeated <= kClusterTasksMax));
    if (!is_number || counts.size() + static_cast<size_t>(repeated) >
                          static_cast<size_t>(kClusterTasksMax)) {
      return NotANumber(kTasksPerNode, text,
                        "tasks of each node, as in 2(x3),1");
    }
    counts.insert(counts.end(), repeated, count);
  }
  return counts;
}

// Returns the place of each rank. Ranks fill one node after the other.
absl::StatusOr<std::vector<Place>> PlacesOfRanks(
    size_t node_count, EnvironmentLookup environment) {
  ASSIGN_OR_RETURN(const std::string text, Text(kTasksPerNode, environment));
  ASSIGN_OR_RETURN(const std::vector<int> counts, ParseTasksPerNode(text));
  if (counts.size() != node_count) {
    return Invalid(kTasksPerNode, " is \"", text, "\", which is ",
                   counts.size(), " nodes, but ", kNodes, " has ", node_count);
  }
  ASSIGN_OR_RETURN(const int task_count, Number(kTaskCount, environment));
  std::vector<Place> places;
  for (size_t node = 0; node < counts.size(); ++node) {
    if (places.size() + static_cast<size_t>(counts[node]) >
        static_cast<size_t>(kClusterTasksMax)) {
      return Invalid(kTasksPerNode, " is \"", text, "\"; expected at most ",
                     kClusterTasksMax, " tasks");
    }
    for (int local = 0; local < counts[node]; ++local) {
      places.push_back({static_cast<int>(node), local});
    }
  }
  if (places.size() != static_cast<size_t>(task_count)) {
    return Invalid(kTaskCount, " is ", task_count, ", but ", kTasksPerNode,
                   " \"", text, "\" adds up to ", places.size());
  }
  return places;
}

// Checks the place of this rank against the one that Slurm reports.
absl::Status CheckPlace(const Place& place, int rank,
                        EnvironmentLookup environment) {
  for (const auto& [name, expected] :
       {std::pair(kNodeIndex, place.node_index),
        std::pair(kLocalIndex, place.local_index)}) {
    if (environment(name) == nullptr) continue;
    ASSIGN_OR_RETURN(const int actual, Number(name, environment));
    if (actual == expected) continue;
    return Invalid(name, " is ", actual, " for ", kRank, "=", rank,
                   "; expected ", expected,
                   " because tasks fill one node after the other. Start them "
                   "with srun --distribution=block");
  }
  return absl::OkStatus();
}

// Parses "12000-12003" or "12000" and returns the first port.
absl::StatusOr<int> FirstReservedPort(absl::string_view text, int needed) {
  const size_t dash = text.find('-');
  const absl::string_view end =
      dash == absl::string_view::npos ? text : text.substr(dash + 1);
  int first = 0;
  int last = 0;
  if (!absl::SimpleAtoi(text.substr(0, dash), &first) ||
      !absl::SimpleAtoi(end, &last) || first < 1 || last < first ||
      last > kPortMax) {
    return NotANumber(kReservedPorts, text,
                      "one range of ports, as in 12000-12003");
  }
  if (last - first + 1 >= needed) return first;
  return Invalid(kReservedPorts, " is \"", text, "\", but a host has ", needed,
                 " tasks; reserve as many with srun --resv-ports=", needed,
                 ", or choose ports with --port_base");
}

// Returns the port of the first task of each host, for users who have not
// chosen one.
absl::StatusOr<int> ChoosePortBase(const std::vector<Place>& places,
                                   EnvironmentLookup environment) {
  if (const char* const reserved = environment(kReservedPorts);
      reserved != nullptr && *reserved != '\0') {
    int needed = 0;
    for (const Place& place : places) {
      needed = std::max(needed, place.local_index + 1);
    }
    return FirstReservedPort(reserved, needed);
  }
  const auto id = [&](const char* name) {
    const char* const text = environment(name);
    uint64_t number = 0;
    return text != nullptr && absl::SimpleAtoi(text, &number)
               ? std::optional<uint64_t>(number)
               : std::nullopt;
  };
  const std::optional<uint64_t> job = id(kJobId);
  if (!job.has_value()) return kPortWithoutJob;
  const uint64_t range =
      (*job * kRangesBetweenJobs + id(kStepId).value_or(0)) % kRangeCount;
  return kFirstPort + static_cast<int>(range) * kRangeWidth;
}

absl::StatusOr<std::vector<std::string>> AddressesOfRanks(
    int port_base, const std::vector<Place>& places,
    const std::vector<std::string>& nodes) {
  std::vector<std::string> addresses;
  for (const Place& place : places) {
    const HostPort address = {nodes[static_cast<size_t>(place.node_index)],
                              port_base + place.local_index};
    if (address.port > kPortMax) {
      return Invalid("--port_base=", port_base, " leaves no port for task ",
                     place.local_index, " of ", address.host,
                     "; choose a lower one");
    }
    addresses.push_back(address.ToString());
  }
  return addresses;
}

absl::StatusOr<ClusterConfig> ResolveRanks(RoleCounts roles, int port_base,
                                           EnvironmentLookup environment) {
  ASSIGN_OR_RETURN(const std::string list, Text(kNodes, environment));
  absl::StatusOr<std::vector<std::string>> nodes = ExpandHostlist(list);
  if (!nodes.ok()) return Invalid(kNodes, ": ", nodes.status().message());
  ASSIGN_OR_RETURN(const std::vector<Place> places,
                   PlacesOfRanks(nodes->size(), environment));
  const int rank_count = static_cast<int>(places.size());
  ASSIGN_OR_RETURN(const int rank, Number(kRank, environment));
  if (rank >= rank_count) {
    return Invalid(kRank, " is ", rank, ", but ", kTaskCount, " is ",
                   rank_count);
  }
  RETURN_IF_ERROR(
      CheckPlace(places[static_cast<size_t>(rank)], rank, environment));
  if (roles.empty() && rank_count == 1) return ClusterConfig();
  if (roles.empty()) roles = {{TaskType::kWorker, rank_count}};
  if (TotalCount(roles) != rank_count) {
    return Invalid(
        kTaskCount, " is ", rank_count,
        ", but --cluster_tasks=", ToString(roles), " has ", TotalCount(roles),
        " tasks; start as many with srun --ntasks=", TotalCount(roles));
  }
  if (port_base == 0) {
    ASSIGN_OR_RETURN(port_base, ChoosePortBase(places, environment));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> addresses,
                   AddressesOfRanks(port_base, places, *nodes));
  ClusterConfig config;
  std::map<TaskType, std::vector<std::string>> lists;
  int next_rank = 0;
  for (const RoleCount& role : roles) {
    for (int index = 0; index < role.count; ++index, ++next_rank) {
      if (next_rank == rank) config.task = {role.type, index};
      lists[role.type].push_back(addresses[static_cast<size_t>(next_rank)]);
    }
  }
  ASSIGN_OR_RETURN(config.cluster, ClusterSpec::FromLists(lists));
  return config;
}

}  // namespace

bool IsInSlurmStep(EnvironmentLookup environment) {
  return environment(kTaskCount) != nullptr && environment(kRank) != nullptr;
}

absl::StatusOr<ClusterConfig> ResolveSlurmCluster(
    const RoleCounts& roles, int port_base, EnvironmentLookup environment) {
  absl::StatusOr<ClusterConfig> config =
      ResolveRanks(roles, port_base, environment);
  if (!config.ok()) return Invalid("Slurm: ", config.status().message());
  config->source = "Slurm's SLURM_STEP_NODELIST and SLURM_PROCID";
  return config;
}

}  // namespace muster
