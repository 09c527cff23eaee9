#ifndef PS_TESTING_SHARD_STATE_H_
#define PS_TESTING_SHARD_STATE_H_

#include <string>
#include <vector>

#include "ps/parameter_shard.h"

namespace muster {

// Returns everything that makes up the state of a shard, part by part: values,
// slots, counts, versions, handles, optimizers, the generation, and the pushes
// that were applied. Two shards with equal parts behave alike. No exchange may
// be running.
std::vector<std::string> StateOf(ParameterShard& shard);

}  // namespace muster

#endif  // PS_TESTING_SHARD_STATE_H_
