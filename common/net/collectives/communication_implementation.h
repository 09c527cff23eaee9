#ifndef COMMON_NET_COLLECTIVES_COMMUNICATION_IMPLEMENTATION_H_
#define COMMON_NET_COLLECTIVES_COMMUNICATION_IMPLEMENTATION_H_

namespace muster {

// How replicas agree.
//
// Equivalent to: tf.distribute.experimental.CommunicationImplementation.
enum class CommunicationImplementation {
  kAuto,  // NCCL where every replica is a GPU of its own, otherwise kRing.
  // What processors do among themselves; which algorithm and which transport
  // follows from sizes and places.
  kRing,
  kNccl,
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_COMMUNICATION_IMPLEMENTATION_H_
