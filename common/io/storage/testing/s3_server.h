#ifndef COMMON_IO_STORAGE_TESTING_S3_SERVER_H_
#define COMMON_IO_STORAGE_TESTING_S3_SERVER_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// An S3 server on a free port of the loopback interface, with its objects in
// memory. It verifies the signature (Version 4) and the SHA-256 of every
// request, and serves what ObjectStore uses: objects, ranges, conditional
// writes, listings in pages, and uploads in parts.
//
// Thread-safe.
class S3Server {
 public:
  static constexpr char kAccessKeyId[] = "AKIDTEST";
  static constexpr char kSecretAccessKey[] = "aSecretThatNoMessageMayContain";
  static constexpr char kRegion[] = "eu-test-1";
  static constexpr char kBucket[] = "bucket";

  struct Options {
    size_t page_keys_max = 1000;  // In a page of a listing.
    std::string session_token;    // Required of requests unless empty.
    // False: as a store that ignores If-None-Match of a PUT.
    bool has_conditional_writes = true;
  };

  struct Request {
    std::string method;
    std::string key;
    std::map<std::string, std::string> query;
    size_t body_bytes = 0;
    bool expects_continue = false;  // The client waits for "100 Continue".
  };
  enum class Action {
    kServe,
    kReportOverload,     // 503 SlowDown.
    kCutBeforeServing,   // Closes the connection. The request has no effect.
    kCutAfterServing,    // As kServe, but closes the connection.
    kDamageRequestBody,  // As kServe, but a bit of the body changes in transit.
    kTrickle,            // As kServe, but sends the body at 1 KB/s.
  };
  // Called for each request on a thread of the server, and may block.
  using Script = std::function<Action(const Request&)>;

  static absl::StatusOr<std::unique_ptr<S3Server>> Start(
      const Options& options);
  static absl::StatusOr<std::unique_ptr<S3Server>> Start() {
    return Start(Options());
  }

  // Waits for requests in progress.
  ~S3Server();
  S3Server(const S3Server&) = delete;
  S3Server& operator=(const S3Server&) = delete;

  // "http://127.0.0.1:4711".
  std::string endpoint() const;
  // Returns the variables of a process that uses this server as s3://bucket.
  std::map<std::string, std::string> Environment() const;

  void set_script(Script script);

  // Returns the objects of the bucket, by key.
  std::map<std::string, std::string> Objects() const;
  void Set(absl::string_view key, absl::string_view content);
  // Uploads that are neither complete nor aborted.
  size_t open_upload_count() const;
  // Requests so far, valid or not.
  size_t request_count() const;

 private:
  class Implementation;
  explicit S3Server(std::unique_ptr<Implementation> implementation);
  const std::unique_ptr<Implementation> implementation_;
};

}  // namespace muster

#endif  // COMMON_IO_STORAGE_TESTING_S3_SERVER_H_
