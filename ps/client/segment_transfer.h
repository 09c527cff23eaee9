#ifndef PS_CLIENT_SEGMENT_TRANSFER_H_
#define PS_CLIENT_SEGMENT_TRANSFER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/system/file_descriptor.h"
#include "common/net/rpc/local_endpoint.h"

// How an open file gets from a client to servers of its host: they come to a
// Unix socket of the client and show a token that it told them.
namespace muster {

class FileHandOut {
 public:
  // `file` is borrowed.
  //   as LocalEndpoint::Listen()
  static absl::StatusOr<std::unique_ptr<FileHandOut>> Open(
      const FileDescriptor* file);

  FileHandOut(const FileHandOut&) = delete;
  FileHandOut& operator=(const FileHandOut&) = delete;

  const std::string& endpoint() const { return endpoint_->address(); }
  const std::string& token() const { return token_; }

  // Gives the file to a process that shows the token, until Stop() or
  // `deadline`.
  void Serve(absl::Time deadline);
  // Ends Serve(), this call or the next. Thread-safe.
  void Stop();

 private:
  FileHandOut(const FileDescriptor* file,
              std::unique_ptr<LocalEndpoint> endpoint);

  void ServeOne();

  const FileDescriptor* const file_;
  const std::unique_ptr<LocalEndpoint> endpoint_;
  const std::string token_;
  const FileDescriptor stop_;  // Readable once stopped.
};

// Gets the file from the hand-out at `endpoint`.
//   kFailedPrecondition  the endpoint is on another host
//   kInvalidArgument     `endpoint` or `token` is invalid
//   kUnavailable         no process answers, or another one does
//   kDeadlineExceeded    nothing came
absl::StatusOr<FileDescriptor> FetchFile(absl::string_view endpoint,
                                         absl::string_view token,
                                         absl::Time deadline);

}  // namespace muster

#endif  // PS_CLIENT_SEGMENT_TRANSFER_H_
