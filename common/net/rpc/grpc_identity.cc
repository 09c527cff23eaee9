#include "common/net/rpc/grpc_identity.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/rpc.pb.h"

namespace muster {
namespace {

// gRPC accepts arbitrary bytes as the value of a key that ends in "-bin".
constexpr char kIdentityKey[] = "muster-identity-bin";
constexpr char kCallKey[] = "muster-call-bin";
constexpr char kLocalSecretKey[] = "muster-local-bin";
constexpr char kRepeatedKey[] = "muster-repeated";

}  // namespace

void AddIdentity(const proto::RequestIdentity& identity,
                 grpc::ClientContext* context) {
  context->AddMetadata(kIdentityKey, identity.SerializeAsString());
}

void AddCallId(const CallId& id, grpc::ClientContext* context) {
  std::string bytes(sizeof(id), '\0');
  std::memcpy(bytes.data(), &id, sizeof(id));
  context->AddMetadata(kCallKey, bytes);
}

void AddLocalSecret(const std::string& secret, grpc::ClientContext* context) {
  context->AddMetadata(kLocalSecretKey, secret);
}

proto::RequestIdentity IdentityOf(
    const grpc::GenericCallbackServerContext& context) {
  proto::RequestIdentity identity;
  const auto found = context.client_metadata().find(kIdentityKey);
  if (found != context.client_metadata().end() &&
      !identity.ParseFromArray(found->second.data(),
                               static_cast<int>(found->second.size()))) {
    identity.Clear();
  }
  return identity;
}

CallId CallIdOf(const grpc::GenericCallbackServerContext& context) {
  CallId id;
  const auto found = context.client_metadata().find(kCallKey);
  if (found != context.client_metadata().end() &&
      found->second.size() == sizeof(id)) {
    std::memcpy(&id, found->second.data(), sizeof(id));
  }
  return id;
}

absl::string_view LocalSecretOf(
    const grpc::GenericCallbackServerContext& context) {
  const auto found = context.client_metadata().find(kLocalSecretKey);
  if (found == context.client_metadata().end()) return "";
  return {found->second.data(), found->second.size()};
}

void MarkRepeated(grpc::GenericCallbackServerContext* context) {
  context->AddTrailingMetadata(kRepeatedKey, "1");
}

bool WasRepeated(const grpc::ClientContext& context) {
  return context.GetServerTrailingMetadata().contains(kRepeatedKey);
}

bool IsCertified(const grpc::GenericCallbackServerContext& context) {
  const std::shared_ptr<const grpc::AuthContext> authentication =
      context.auth_context();
  return authentication != nullptr && authentication->IsPeerAuthenticated();
}

absl::StatusOr<SpiffeId> CertifiedCaller(
    const grpc::GenericCallbackServerContext& context) {
  const std::shared_ptr<const grpc::AuthContext> authentication =
      context.auth_context();
  if (authentication != nullptr && authentication->IsPeerAuthenticated()) {
    const std::vector<grpc::string_ref> ids =
        authentication->FindPropertyValues(GRPC_PEER_SPIFFE_ID_PROPERTY_NAME);
    if (ids.size() == 1) {
      return ParseSpiffeId(
          absl::string_view(ids.front().data(), ids.front().size()));
    }
  }
  return absl::UnauthenticatedError(
      "the connection has no certificate that names one task");
}

}  // namespace muster
