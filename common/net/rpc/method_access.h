#ifndef COMMON_NET_RPC_METHOD_ACCESS_H_
#define COMMON_NET_RPC_METHOD_ACCESS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// The task that a certificate is issued to, as the URI among its subject
// alternative names: "spiffe://muster/JOB/ROLE/INDEX". The form is that of
// https://github.com/spiffe/spiffe/blob/main/standards/SPIFFE-ID.md.
struct SpiffeId {
  std::string job;  // Letters, digits, ".", "-" and "_"; at most 128.
  // As TF_CONFIG spells it (chief, worker, ps, evaluator), or "operator". An
  // operator is a person or a script that controls the job, not one of its
  // tasks.
  std::string role;
  int index = 0;

  std::string ToString() const;  // "spiffe://muster/mnist/worker/1"
  std::string TaskName() const;  // "worker 1", as TaskIdentity::ToString().

  bool operator==(const SpiffeId&) const = default;
};

//   kInvalidArgument  `uri` has another trust domain or another form; the
//                     message gives the expected form
absl::StatusOr<SpiffeId> ParseSpiffeId(absl::string_view uri);

// True if `name` can be the job of a SpiffeId.
bool IsJobName(absl::string_view name);

// Returns whether a caller of `role` ("chief", "worker", "ps", "evaluator" or
// "operator") may call `method` ("/muster.ParameterServer/Exchange"). One table
// lists which roles may call each method. A role or method that is not listed
// is refused.
//
// Servers with TLS apply it to the role in the caller's certificate. Servers
// without TLS do not: without a certificate, a caller can claim any role.
bool MayCall(absl::string_view role, absl::string_view method);

// False for a stream whose messages belong to the process that sends them, and
// not to a coordinator: it stays admitted when the job gets another
// coordinator, whose epoch is higher than that of the stream.
bool ChecksEachMessage(absl::string_view method);

}  // namespace muster

#endif  // COMMON_NET_RPC_METHOD_ACCESS_H_
