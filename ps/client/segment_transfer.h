#ifndef PS_CLIENT_SEGMENT_TRANSFER_H_
#define PS_CLIENT_SEGMENT_TRANSFER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/system/file_descriptor.h"
#include "common/net/rpc/local_endpoint.h"

// Passes an open file from a client to servers of its host. A server connects
// to a Unix socket of the client and presents a token that the client has sent
// to it.
namespace muster {

class FileServer {
 public:
  // `file` is borrowed.
  //   Fails as LocalEndpoint::Listen() does.
  static absl::StatusOr<std::unique_ptr<FileServer>> Open(
      const FileDescriptor* file);

  FileServer(const FileServer&) = delete;
  FileServer& operator=(const FileServer&) = delete;

  const std::string& endpoint() const { return endpoint_->address(); }
  const std::string& token() const { return token_; }

  // Sends the file to each process that presents the token, until Stop() or
  // `deadline`.
  void Serve(absl::Time deadline);
  // Ends the current or the next call of Serve(). Thread-safe.
  void Stop();

 private:
  FileServer(const FileDescriptor* file,
             std::unique_ptr<LocalEndpoint> endpoint);

  void ServeOne();

  const FileDescriptor* const file_;
  const std::unique_ptr<LocalEndpoint> endpoint_;
  const std::string token_;
  const FileDescriptor stop_;  // Readable after Stop().
};

// Fetches the file from the FileServer at `endpoint`.
//   kFailedPrecondition  the endpoint is on another host
//   kInvalidArgument     `endpoint` or `token` is invalid
//   kUnavailable         no process listens there, or it runs as another
//                        user, or it sent no file
//   kDeadlineExceeded    no file was received before `deadline`
absl::StatusOr<FileDescriptor> FetchFile(absl::string_view endpoint,
                                         absl::string_view token,
                                         absl::Time deadline);

}  // namespace muster

#endif  // PS_CLIENT_SEGMENT_TRANSFER_H_
