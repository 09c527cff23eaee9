#ifndef COMMON_IO_STORAGE_TESTING_S3_SIGNATURE_H_
#define COMMON_IO_STORAGE_TESTING_S3_SIGNATURE_H_

#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster {

// The parts of a request that its signature covers.
struct SignedRequest {
  std::string method;
  std::string path;                            // Escaped, as it was sent.
  std::string query;                           // Escaped, as it was sent.
  std::map<std::string, std::string> headers;  // Names are in lower case.
  absl::string_view body;
};

struct SigningKey {
  std::string access_key_id;
  std::string secret_access_key;
  std::string region;
};

// Verifies the signature of a request to S3. Follows the specification and does
// not use the library that signs. Returns the error code of S3, such as
// "SignatureDoesNotMatch"; "" if the signature is valid.
//
// Specification:
// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
std::string VerifySignature(const SignedRequest& request, const SigningKey& key,
                            absl::Time now);

}  // namespace muster

#endif  // COMMON_IO_STORAGE_TESTING_S3_SIGNATURE_H_
