#ifndef COORDINATOR_ITERATOR_RECORD_H_
#define COORDINATOR_ITERATOR_RECORD_H_

#include <string>
#include <vector>

#include "proto/worker.pb.h"

namespace muster {

// An input pipeline in the form in which it is sent to workers: one definition
// for all workers, or one for each.
struct IteratorRecord {
  std::vector<std::string> serialized_datasets;
  std::vector<proto::IteratorDefinition> contexts;  // By worker; no dataset.
};

}  // namespace muster

#endif  // COORDINATOR_ITERATOR_RECORD_H_
