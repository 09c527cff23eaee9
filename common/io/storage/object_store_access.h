#ifndef COMMON_IO_STORAGE_OBJECT_STORE_ACCESS_H_
#define COMMON_IO_STORAGE_OBJECT_STORE_ACCESS_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// The address of an object store and the credentials of its user. Contains
// secrets, which must not be logged.
struct ObjectStoreAccess {
  // "https://storage.example:9000", which holds buckets as folders; empty for
  // Amazon's S3 of the region. Only a URL that begins with "http://" is used
  // without TLS.
  std::string endpoint;
  std::string region;
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token;  // Empty: none.
  std::string ca_file;        // PEM; empty: the system's certificates.
};

using EnvironmentReader = std::function<const char*(const char* name)>;

// Reads the variables that Amazon's tools read:
//   AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN; without them
//     the profile AWS_PROFILE ("default") of AWS_SHARED_CREDENTIALS_FILE
//     (~/.aws/credentials)
//   AWS_REGION, AWS_DEFAULT_REGION ("us-east-1")
//   AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL
//   AWS_CA_BUNDLE
// For `scheme` "gs", GS_ACCESS_KEY_ID, GS_SECRET_ACCESS_KEY (an HMAC key of
// Google's Cloud Storage) and GS_ENDPOINT_URL come first, and no endpoint of
// Amazon's is used.
//
// Messages name variables and files, and never contain a value of a secret.
//   kFailedPrecondition  there are no credentials, or only one of the two keys
//   kInvalidArgument     the endpoint is not an http:// or https:// URL, or the
//                        file of credentials is malformed
// Documentation:
// https://docs.aws.amazon.com/sdkref/latest/guide/environment-variables.html
absl::StatusOr<ObjectStoreAccess> FindObjectStoreAccess(
    absl::string_view scheme, const EnvironmentReader& environment);

}  // namespace muster

#endif  // COMMON_IO_STORAGE_OBJECT_STORE_ACCESS_H_
