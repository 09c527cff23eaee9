#ifndef PS_CLIENT_PLACEMENT_H_
#define PS_CLIENT_PLACEMENT_H_

#include <cstdint>
#include <vector>

namespace muster {

enum class PlacementPolicy {
  // Each shard goes to the next server, as in TensorFlow. If kernels and biases
  // alternate, two servers hold very different numbers of bytes.
  kRoundRobin,
  // Each shard goes to the server that holds the fewest bytes. If several do,
  // the first of them gets it.
  kGreedyByBytes,
};

// Chooses a server for each shard, in the order of creation. Every task that
// places the same shards in the same order gets the same result.
//
// Not thread-safe.
class Placement {
 public:
  // server_count >= 1.
  Placement(PlacementPolicy policy, int server_count);

  // Returns the server of the next shard. Optimizer slots are stored beside
  // their variable and are not placed.
  int PlaceNext(int64_t size_bytes);

  // Records a shard that another task placed on `server`. Calls must come in
  // the order in which the shards were placed.
  void NotePlaced(int server, int64_t size_bytes);

  // Bytes placed on each server so far.
  const std::vector<int64_t>& server_bytes() const { return server_bytes_; }

 private:
  PlacementPolicy policy_;
  std::vector<int64_t> server_bytes_;
  int64_t placed_count_ = 0;
};

}  // namespace muster

#endif  // PS_CLIENT_PLACEMENT_H_
