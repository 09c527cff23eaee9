#ifndef COORDINATOR_UPDATE_ROUNDS_H_
#define COORDINATOR_UPDATE_ROUNDS_H_

#include <cstdint>

namespace muster {

// The rounds of synchronous training on parameter servers: a state machine
// without threads or clocks.
//
// The servers add up the gradients of `gradient_count` closures, and then
// update the variables with the mean. In each round that many closures are
// chosen, in the order in which they have computed their gradients. The round
// ends when all of them have finished. Gradients of other closures were
// computed with old weights by then, and are dropped.
//
// Equivalent to: tf.compat.v1.train.SyncReplicasOptimizer, with
// replicas_to_aggregate = gradient_count and
// total_num_replicas = gradient_count + backup_count.
//
// Not thread-safe.
class UpdateRounds {
 public:
  struct Options {
    // The gradients of one update; 0 if training is asynchronous.
    int gradient_count = 0;
    // How many more closures a round may start than it needs.
    int backup_count = 0;
  };

  explicit UpdateRounds(const Options& options) : options_(options) {}

  bool is_synchronous() const { return options_.gradient_count > 0; }

  // Begins a round of which the servers already have `applied_count` gradients,
  // fewer than gradient_count. Closures of earlier rounds do not take part.
  void Begin(int applied_count);

  // True if another closure may start in this round. False once all are chosen:
  // the variables are about to change.
  bool MayStart() const {
    return chosen_count_ < options_.gradient_count &&
           member_count_ < options_.gradient_count + options_.backup_count;
  }
  // Adds a closure to the round, and returns the number of the round. Requires
  // MayStart().
  uint64_t Start();

  // Decides on a closure of `round` that has computed its gradients. Returns
  // true if they are to be applied.
  bool Choose(uint64_t round);

  // Records that a chosen closure has finished. Returns true if the next round
  // has begun.
  bool FinishChosen();

  // Removes a closure of `round` that was not chosen.
  void Leave(uint64_t round);

  uint64_t round() const { return round_; }

 private:
  const Options options_;
  uint64_t round_ = 0;
  int member_count_ = 0;  // Started and chosen closures, and those applied.
  int chosen_count_ = 0;
  int finished_count_ = 0;
};

}  // namespace muster

#endif  // COORDINATOR_UPDATE_ROUNDS_H_
