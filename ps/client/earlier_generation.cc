#include "ps/client/earlier_generation.h"

#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"

namespace muster {
namespace {

constexpr absl::string_view kTypeUrl = "type.muster/EarlierGeneration";

}  // namespace

absl::Status AsOfEarlierGeneration(absl::Status refusal) {
  refusal.SetPayload(kTypeUrl, absl::Cord());
  return refusal;
}

bool IsOfEarlierGeneration(const absl::Status& status) {
  return status.GetPayload(kTypeUrl).has_value();
}

}  // namespace muster
