#include "common/net/rpc/hand_over.h"

namespace muster {

void HandOver::Give() { given_.exchange(true, std::memory_order_acq_rel); }

void HandOver::Take() const { given_.load(std::memory_order_acquire); }

}  // namespace muster
