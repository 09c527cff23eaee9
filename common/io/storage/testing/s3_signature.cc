#include "common/io/storage/testing/s3_signature.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/io/storage/s3_xml.h"
#include "common/io/storage/sha256.h"

namespace muster {
namespace {

constexpr absl::string_view kAlgorithm = "AWS4-HMAC-SHA256";
constexpr absl::Duration kSkewMax = absl::Minutes(15);

std::string Hmac(absl::string_view key, absl::string_view text) {
  uint8_t digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const uint8_t*>(text.data()), text.size(), digest,
       &size);
  return std::string(reinterpret_cast<const char*>(digest), size);
}

// Returns the query sorted and escaped as the specification requires, in
// whatever form it was sent.
std::string CanonicalQuery(absl::string_view query) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (const absl::string_view entry :
       absl::StrSplit(query, '&', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(entry, absl::MaxSplits('=', 1));
    entries.emplace_back(UrlUnescape(parts.first), UrlUnescape(parts.second));
  }
  return UrlQuery(std::move(entries));
}

// Returns the fields of "AWS4-HMAC-SHA256 Credential=.., SignedHeaders=.., ..".
std::map<std::string, std::string> Fields(absl::string_view authorization) {
  std::map<std::string, std::string> fields;
  if (!absl::ConsumePrefix(&authorization, kAlgorithm)) return fields;
  for (absl::string_view field : absl::StrSplit(authorization, ',')) {
    fields.insert(absl::StrSplit(absl::StripAsciiWhitespace(field),
                                 absl::MaxSplits('=', 1)));
  }
  return fields;
}

}  // namespace

std::string VerifySignature(const SignedRequest& request, const SigningKey& key,
                            absl::Time now) {
  const auto header = [&](const std::string& name) -> std::string {
    const auto found = request.headers.find(name);
    return found == request.headers.end() ? "" : found->second;
  };
  std::map<std::string, std::string> fields = Fields(header("authorization"));
  const std::vector<std::string> scope =
      absl::StrSplit(fields["Credential"], '/');
  if (scope.size() != 5) return "AccessDenied";
  if (scope[0] != key.access_key_id) return "InvalidAccessKeyId";
  if (scope[2] != key.region || scope[3] != "s3") {
    return "AuthorizationHeaderMalformed";
  }
  const std::string date = header("x-amz-date");
  absl::Time signed_at;
  if (!absl::ParseTime("%E4Y%m%dT%H%M%SZ", date, &signed_at, nullptr) ||
      absl::AbsDuration(now - signed_at) > kSkewMax) {
    return "RequestTimeTooSkewed";
  }
  const std::string payload_hash = header("x-amz-content-sha256");
  std::string canonical = absl::StrCat(request.method, "\n", request.path, "\n",
                                       CanonicalQuery(request.query), "\n");
  const std::string& names = fields["SignedHeaders"];
  for (const absl::string_view name : absl::StrSplit(names, ';')) {
    absl::StrAppend(&canonical, name, ":", header(std::string(name)), "\n");
  }
  absl::StrAppend(&canonical, "\n", names, "\n", payload_hash);
  const std::string text =
      absl::StrCat(kAlgorithm, "\n", date, "\n", scope[1], "/", scope[2],
                   "/s3/", scope[4], "\n", Sha256Of(canonical));
  std::string signing_key = absl::StrCat("AWS4", key.secret_access_key);
  for (int i = 1; i < 5; ++i) signing_key = Hmac(signing_key, scope[i]);
  if (absl::BytesToHexString(Hmac(signing_key, text)) != fields["Signature"]) {
    return "SignatureDoesNotMatch";
  }
  // The signature must cover both.
  if (!absl::StrContains(names, "host") ||
      !absl::StrContains(names, "x-amz-content-sha256")) {
    return "AccessDenied";
  }
  return payload_hash == Sha256Of(request.body) ? ""
                                                : "XAmzContentSHA256Mismatch";
}

}  // namespace muster
