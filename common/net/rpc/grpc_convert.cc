#include "common/net/rpc/grpc_convert.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>
#include <grpcpp/support/slice.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/system/metrics.h"
#include "common/net/rpc/hand_over.h"
#include "common/net/rpc/status_detail.h"
#include "proto/rpc.pb.h"

namespace muster {
namespace {

constexpr MetricInfo kBytesSent = {
    "muster_rpc_bytes_sent_total",
    "Bytes of messages that were given to gRPC to be sent."};
constexpr MetricInfo kBytesReceived = {
    "muster_rpc_bytes_received_total",
    "Bytes of messages that were received over gRPC."};

// A status is sent in HTTP/2 headers, whose size is limited.
constexpr size_t kStatusMessageBytesMax = 2000;

// Returns the last part of gRPC's message if the peer is unavailable. gRPC puts
// everything that it tried before the cause: "failed to connect to all
// addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Failed to connect to remote
// host: Connection refused".
std::string PlainMessage(const grpc::Status& status) {
  const std::string whole = status.error_message();
  absl::string_view message = whole;
  if (status.error_code() != grpc::StatusCode::UNAVAILABLE) {
    return whole;
  }
  message.remove_prefix(message.rfind(':') + 1);  // npos + 1 is 0.
  std::string plain(absl::StripAsciiWhitespace(message));
  if (!plain.empty()) plain[0] = absl::ascii_tolower(plain[0]);
  return plain;
}

// Keeps the bytes of a slice alive until gRPC has sent it.
struct HeldOwner {
  std::shared_ptr<const void> owner;
  HandOver hand_over{};
};

}  // namespace

grpc::ByteBuffer ToByteBuffer(std::vector<MessageSlice> slices) {
  static Counter* const bytes_sent = GetCounter(kBytesSent);
  std::vector<grpc::Slice> parts;
  parts.reserve(slices.size());
  size_t size_bytes = 0;
  for (MessageSlice& slice : slices) {
    size_bytes += slice.size_bytes;
    auto* held = new HeldOwner{.owner = std::move(slice.owner)};
    held->hand_over.Give();
    parts.emplace_back(
        const_cast<uint8_t*>(slice.data), slice.size_bytes,
        [](void* given) {
          auto* taken = static_cast<HeldOwner*>(given);
          taken->hand_over.Take();
          delete taken;
        },
        held);
  }
  bytes_sent->Add(static_cast<int64_t>(size_bytes));
  return grpc::ByteBuffer(parts.data(), parts.size());
}

std::vector<MessageSlice> FromByteBuffer(const grpc::ByteBuffer& buffer) {
  static Counter* const bytes_received = GetCounter(kBytesReceived);
  auto owner = std::make_shared<std::vector<grpc::Slice>>();
  if (!buffer.Valid() || !buffer.Dump(owner.get()).ok()) return {};
  std::vector<MessageSlice> slices;
  slices.reserve(owner->size());
  for (const grpc::Slice& part : *owner) {
    slices.push_back({part.begin(), part.size(), owner});
  }
  bytes_received->Add(static_cast<int64_t>(buffer.Length()));
  return slices;
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  proto::StatusDetail detail = EncodeStatus(status);
  if (detail.message().size() > kStatusMessageBytesMax) {
    detail.mutable_message()->resize(kStatusMessageBytesMax);
    detail.mutable_message()->append(" ...");
  }
  // The details contain the message, so it is not sent a second time.
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), "",
                      detail.SerializeAsString());
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  proto::StatusDetail detail;
  if (!status.error_details().empty() &&
      detail.ParseFromString(status.error_details()) &&
      detail.code() == static_cast<int>(status.error_code())) {
    return DecodeStatus(detail);
  }
  detail.Clear();
  detail.set_code(static_cast<int>(status.error_code()));
  detail.set_message(PlainMessage(status));
  return DecodeStatus(detail);
}

gpr_timespec GrpcDeadline(absl::Duration duration) {
  // Prevents an overflow if `duration` is infinite.
  constexpr absl::Duration kLongest = absl::Hours(24 * 365);
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_micros(absl::ToInt64Microseconds(
                                               std::min(duration, kLongest)),
                                           GPR_TIMESPAN));
}

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
