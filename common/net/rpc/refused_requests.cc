#include "common/net/rpc/refused_requests.h"

#include <string>

#include "common/core/system/metrics.h"

namespace muster {
namespace {

constexpr MetricInfo kRefused = {
    "muster_requests_refused_total",
    "Requests that were refused because of their sender."};

}  // namespace

void CountRefusedRequest(absl::string_view cause) {
  GetCounter(kRefused, {{"cause", std::string(cause)}})->Add();
}

}  // namespace muster
