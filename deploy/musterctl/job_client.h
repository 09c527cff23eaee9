#ifndef DEPLOY_MUSTERCTL_JOB_CLIENT_H_
#define DEPLOY_MUSTERCTL_JOB_CLIENT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/net/rpc/tls_context.h"

namespace muster {

// The way from musterctl to a running job: its state over HTTP, requests over
// gRPC. Not thread-safe.
class JobClient {
 public:
  struct Options {
    // Of the status pages of the task that leads the job: "host:port".
    std::string status_address;
    std::string token;  // Of the status pages; may be empty.
    // Of an operator or of the chief; empty: plaintext.
    TlsFiles tls;
    // How long one page or one request may take.
    absl::Duration timeout = absl::Minutes(1);
  };

  explicit JobClient(Options options);

  // Returns /status.json. Errors as GetStatusPage().
  absl::StatusOr<std::string> Status() const;

  // Each returns when the request has taken effect.
  //   kFailedPrecondition  the task takes no requests, or the job cannot do
  //                        this; the message has the way out
  //   kPermissionDenied    the certificate is not that of an operator or chief
  //   kDeadlineExceeded    the request may still take effect
  //   others               as GetStatusPage() and TlsContext::Load()

  // Returns the prefix of the checkpoint.
  absl::StatusOr<std::string> Checkpoint() const;
  // `task` is "worker:1".
  absl::Status Drain(absl::string_view task) const;
  absl::Status Stop() const;
  // Returns the trace of the job in the next `duration`, in Chrome's format.
  absl::StatusOr<std::string> Trace(absl::Duration duration) const;

 private:
  template <typename Response, typename Request>
  absl::StatusOr<Response> Ask(absl::string_view method, const Request& request,
                               absl::Duration timeout) const;

  const Options options_;
};

}  // namespace muster

#endif  // DEPLOY_MUSTERCTL_JOB_CLIENT_H_
