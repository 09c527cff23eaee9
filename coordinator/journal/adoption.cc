#include "coordinator/journal/adoption.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "common/net/rpc/identity.h"
#include "proto/coordinator_journal.pb.h"

namespace muster {
namespace {

// Returns why the server does not have the variables that the journal
// describes; empty if it has them.
std::string LackOf(const proto::JournalRecord& state, size_t index,
                   const ServerDescription& server) {
  const proto::JournalJob& job = state.job();
  // A server without variables can be replaced, and may not know the job.
  const auto& shard_counts = state.training().server_shard_counts();
  if (index < static_cast<size_t>(shard_counts.size()) &&
      shard_counts.Get(static_cast<int>(index)) == 0) {
    return "";
  }
  const uint64_t recorded =
      index < static_cast<size_t>(job.server_state_ids_size())
          ? job.server_state_ids(static_cast<int>(index))
          : 0;
  if (server.state_id != recorded) {
    return absl::StrCat(server.name, " is another process, incarnation ",
                        IncarnationString(server.incarnation),
                        ", than the last coordinator had, and has not restored "
                        "the state of that one");
  }
  if (server.job_id != job.job_id()) {
    return absl::StrCat(server.name, " has dropped the job");
  }
  if (server.generation != job.generation()) {
    return absl::StrCat(server.name, " is in generation ", server.generation,
                        " of the variables, and the last coordinator was in ",
                        job.generation());
  }
  return "";
}

}  // namespace

Adoption DecideAdoption(const proto::JournalRecord& state,
                        const std::vector<ServerDescription>& servers) {
  const proto::JournalJob& job = state.job();
  const bool is_abandoned = std::none_of(
      servers.begin(), servers.end(), [&job](const ServerDescription& server) {
        return server.job_id == job.job_id();
      });
  if (is_abandoned) return {AdoptionKind::kBegin, ""};
  if (state.has_end()) {
    if (state.end().exit_code() == 0) return {AdoptionKind::kEndTasks, ""};
    return {AdoptionKind::kRestartTasks,
            absl::StrCat("the last coordinator had ended the job: ",
                         state.end().reason())};
  }
  if (!state.has_training()) {
    return {AdoptionKind::kRestartTasks, "training had not begun"};
  }
  for (size_t i = 0; i < servers.size(); ++i) {
    const std::string lack = LackOf(state, i, servers[i]);
    if (!lack.empty()) return {AdoptionKind::kRestartTasks, lack};
  }
  if (!state.obstacle().empty()) {
    return {AdoptionKind::kRestartTasks, state.obstacle()};
  }
  if (state.training().fit_number() > 1) {
    return {AdoptionKind::kRestartTasks,
            absl::StrCat("the program was in its call ",
                         state.training().fit_number(),
                         " of Fit(); expected one call")};
  }
  return {AdoptionKind::kContinue, ""};
}

}  // namespace muster
