#include "common/rpc/hand_over.h"

namespace muster {

void HandOver::Give() { given_.store(true, std::memory_order_release); }

void HandOver::Take() const { given_.load(std::memory_order_acquire); }

}  // namespace muster
