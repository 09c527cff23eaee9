#include "common/net/rpc/service.h"

#include <utility>

#include "absl/strings/string_view.h"

namespace muster {

void Service::AddUnary(absl::string_view method, UnaryHandler handler) {
  unary_[method] = std::move(handler);
}

void Service::AddStream(absl::string_view method, StreamHandler handler) {
  streams_[method] = std::move(handler);
}

void Service::WrapUnary(
    absl::FunctionRef<UnaryHandler(absl::string_view, UnaryHandler)> wrap) {
  for (auto& [method, handler] : unary_) {
    handler = wrap(method, std::move(handler));
  }
}

const Service::UnaryHandler* Service::FindUnary(
    absl::string_view method) const {
  const auto found = unary_.find(method);
  return found == unary_.end() ? nullptr : &found->second;
}

const Service::StreamHandler* Service::FindStream(
    absl::string_view method) const {
  const auto found = streams_.find(method);
  return found == streams_.end() ? nullptr : &found->second;
}

}  // namespace muster
