#include "common/net/process/preemption_notice.h"

namespace muster {

PreemptionNotice& PreemptionNotice::OfProcess() {
  static PreemptionNotice* const notice = new PreemptionNotice();
  return *notice;
}

}  // namespace muster
