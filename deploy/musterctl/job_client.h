#ifndef DEPLOY_MUSTERCTL_JOB_CLIENT_H_
#define DEPLOY_MUSTERCTL_JOB_CLIENT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/net/rpc/tls_context.h"

namespace muster {

// Connects musterctl to a running job. Reads its state over HTTP and sends
// requests over gRPC. Not thread-safe.
class JobClient {
 public:
  struct Options {
    // The address of the status pages of the task that leads the job:
    // "host:port".
    std::string status_address;
    std::string token;  // The token of the status pages; may be empty.
    // The certificate of an operator or of the chief; empty for plaintext.
    TlsFiles tls;
    // How long one page or one request may take.
    absl::Duration timeout = absl::Minutes(1);
  };

  explicit JobClient(Options options);

  // Returns /status.json. Errors as GetStatusPage().
  absl::StatusOr<std::string> Status() const;

  // Each of the following returns when the request has taken effect.
  //   kFailedPrecondition  the task accepts no requests, or the job cannot
  //                        fulfil this one; the message says how to fix it
  //   kPermissionDenied    the certificate does not belong to an operator or
  //                        chief
  //   kDeadlineExceeded    the request may still take effect
  //   others               as GetStatusPage() and TlsContext::Load()

  // Returns the prefix of the checkpoint.
  absl::StatusOr<std::string> Checkpoint() const;
  // `task` is "worker:1".
  absl::Status Drain(absl::string_view task) const;
  absl::Status Stop() const;
  // Records the job for `duration`, and returns the trace in Chrome's format.
  absl::StatusOr<std::string> Trace(absl::Duration duration) const;

 private:
  template <typename Response, typename Request>
  absl::StatusOr<Response> Ask(absl::string_view method, const Request& request,
                               absl::Duration timeout) const;

  const Options options_;
};

}  // namespace muster

#endif  // DEPLOY_MUSTERCTL_JOB_CLIENT_H_
