#include "common/compute/variables/initializer.h"

#include <memory>

#include "proto/variable.pb.h"

namespace muster {

Initializer::Initializer() : Initializer(proto::Initializer()) {}

Initializer::Initializer(const proto::Initializer& definition)
    : definition_(std::make_shared<const proto::Initializer>(definition)) {}

}  // namespace muster
