#ifndef PS_CLIENT_VARIABLE_DIRECTORY_H_
#define PS_CLIENT_VARIABLE_DIRECTORY_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "ps/client/partitioner.h"
#include "ps/client/placement.h"
#include "ps/client/remote_variable.h"
#include "ps/client/server_group.h"
#include "ps/client/shard_layout.h"

namespace muster {

namespace proto {
class CreateRequest;
class ShardSpec;
class VariableSpec;
}  // namespace proto

// The variables of a job and the locations of their shards. A variable lives as
// long as the directory.
//
// Thread-safe. Calls that send requests to servers block.
class VariableDirectory {
 public:
  // `servers` is borrowed. If `partitioner` is null, variables are not sharded.
  VariableDirectory(ServerGroup* servers,
                    std::shared_ptr<const Partitioner> partitioner,
                    PlacementPolicy placement);

  // Asks the servers which shards they hold. Ignores variables with missing
  // shards: they are being created.
  //   kInternal  the descriptions of the servers contradict each other
  absl::Status Refresh() ABSL_LOCKS_EXCLUDED(create_mutex_, mutex_);

  // As VariableStore::Create().
  absl::Status Create(const proto::VariableSpec& spec)
      ABSL_LOCKS_EXCLUDED(create_mutex_, mutex_);

  // As VariableStore::StartOver().
  absl::Status StartOver(const proto::VariableSpec& spec)
      ABSL_LOCKS_EXCLUDED(create_mutex_, mutex_);

  // Creates the shards of these servers again, with the handles that they had.
  // If `starts_over`, they get their initial values, including shards that
  // exist. Otherwise the values of new shards are zero. First calls `begin`,
  // after which requests reach the new processes. No other thread creates
  // variables meanwhile: on a new process they would get handles that belong to
  // the shards that it lacks. Returns the error of `begin` or of a server.
  absl::Status Recreate(absl::Span<const int> servers, bool starts_over,
                        absl::FunctionRef<absl::Status()> begin)
      ABSL_LOCKS_EXCLUDED(create_mutex_, mutex_);

  // Returns a variable. Asks the servers if the name is unknown here.
  //   kNotFound  no such variable
  absl::StatusOr<RemoteVariable*> Find(absl::string_view name)
      ABSL_LOCKS_EXCLUDED(create_mutex_, mutex_);

  // In the order of creation.
  std::vector<proto::VariableSpec> List() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The variables live as long as the directory.
  std::vector<RemoteVariable*> variables() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Returns the request for one shard of `variable`.
  static proto::ShardSpec SpecOf(const proto::VariableSpec& variable,
                                 int64_t ordinal, const ShardLayout& layout,
                                 int64_t shard);
  // Returns the requests for the shards of a variable.
  static std::vector<proto::CreateRequest> RequestsOf(
      const RemoteVariable& variable, bool starts_over);
  RemoteVariable* FindKnown(absl::string_view name) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Add(std::unique_ptr<RemoteVariable> variable)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(create_mutex_) ABSL_LOCKS_EXCLUDED(mutex_);

  ServerGroup* const servers_;
  const std::shared_ptr<const Partitioner> partitioner_;

  // One variable is created at a time, so that placement follows the order of
  // creation. Taken before mutex_.
  absl::Mutex create_mutex_;
  Placement placement_ ABSL_GUARDED_BY(create_mutex_);
  int64_t next_ordinal_ ABSL_GUARDED_BY(create_mutex_) = 0;

  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, std::unique_ptr<RemoteVariable>> by_name_
      ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, RemoteVariable*> by_ordinal_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // PS_CLIENT_VARIABLE_DIRECTORY_H_
