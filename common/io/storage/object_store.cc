#include "common/io/storage/object_store.h"

#include <openssl/evp.h>

#include <algorithm>
#include <random>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/io/storage/s3_xml.h"
#include "common/io/storage/sha256.h"

namespace muster {
namespace {

// Maximum size of a store's text in messages.
constexpr size_t kTextBytesMax = 300;

absl::string_view AsText(absl::Span<const uint8_t> bytes) {
  return absl::string_view(reinterpret_cast<const char*>(bytes.data()),
                           bytes.size());
}

bool IsSuccess(const HttpClient::Response& response) {
  // Completing an upload can fail after the status was sent.
  return response.status_code / 100 == 2 &&
         !absl::StrContains(response.body, "<Error>");
}

bool IsTransient(const HttpClient::Response& response) {
  switch (response.status_code) {
    case 408:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
      return true;
    default:
      break;
  }
  const std::string code = XmlText(response.body, "Code");
  return code == "RequestTimeout" || code == "SlowDown" ||
         code == "InternalError" || code == "OperationAborted" ||
         code == "ConditionalRequestConflict" ||
         code == "XAmzContentSHA256Mismatch" || code == "BadDigest";
}

bool IsTransient(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

// Returns "503 SlowDown (Please reduce your request rate.)".
std::string Answer(const HttpClient::Response& response) {
  std::string text = absl::StrCat(response.status_code);
  if (const std::string code = XmlText(response.body, "Code"); !code.empty()) {
    absl::StrAppend(&text, " ", absl::CHexEscape(code.substr(0, 80)));
  }
  if (const std::string message = XmlText(response.body, "Message");
      !message.empty()) {
    absl::StrAppend(&text, " (",
                    absl::CHexEscape(message.substr(0, kTextBytesMax)), ")");
  }
  return text;
}

// Returns what the operator can do about an error response.
std::string RemedyFor(const ObjectUrl& url, absl::string_view code,
                      const HttpClient::Response& response) {
  const absl::string_view prefix = url.scheme == "gs" ? "GS_ or AWS_" : "AWS_";
  if (code == "SignatureDoesNotMatch") {
    return absl::StrCat(
        "the secret key does not belong to the access key: check ", prefix,
        "SECRET_ACCESS_KEY, or the credentials file");
  }
  if (code == "InvalidAccessKeyId") {
    return absl::StrCat("the access key is unknown to the store: check ",
                        prefix, "ACCESS_KEY_ID and the endpoint");
  }
  if (code == "ExpiredToken" || code == "InvalidToken") {
    return "the session has ended: renew AWS_SESSION_TOKEN and its keys";
  }
  if (code == "RequestTimeTooSkewed") {
    return "the clock of this machine is wrong";
  }
  if (code == "NoSuchBucket") {
    return absl::StrCat("create the bucket ", url.bucket,
                        ", or check its name and the endpoint");
  }
  if (const absl::string_view region = response.header("x-amz-bucket-region");
      !region.empty() && response.status_code != 404) {
    return absl::StrCat("the bucket is in the region ",
                        absl::CHexEscape(region.substr(0, 40)),
                        ": check AWS_REGION");
  }
  if (response.status_code == 403) {
    return "the credentials do not permit it: grant the user reading, writing, "
           "listing and deleting objects of this bucket";
  }
  return "";
}

absl::StatusCode CodeOf(absl::string_view code,
                        const HttpClient::Response& response) {
  if (code == "NoSuchBucket" || !response.header("location").empty() ||
      code == "AuthorizationHeaderMalformed") {
    return absl::StatusCode::kFailedPrecondition;
  }
  switch (response.status_code) {
    case 401:
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    case 412:
      return absl::StatusCode::kDataLoss;
    default:
      break;
  }
  if (code == "ExpiredToken" || code == "InvalidToken") {
    return absl::StatusCode::kPermissionDenied;
  }
  if (IsTransient(response)) return absl::StatusCode::kUnavailable;
  return response.status_code / 100 == 3 ? absl::StatusCode::kFailedPrecondition
                                         : absl::StatusCode::kInvalidArgument;
}

absl::Status InvalidResponse(const ObjectUrl& url, absl::string_view what) {
  return absl::InternalError(absl::StrCat("the response of the store about ",
                                          url.ToString(),
                                          " is invalid: ", what));
}

HttpClient::Options HttpOptions(const ObjectStore::Options& options) {
  return {.region = options.access.region,
          .access_key_id = options.access.access_key_id,
          .secret_access_key = options.access.secret_access_key,
          .ca_file = options.access.ca_file,
          .connect_timeout = options.connect_timeout,
          .stall_timeout = options.stall_timeout};
}

}  // namespace

ObjectStore::ObjectStore(const Options& options)
    : options_(options),
      clock_(options.clock == nullptr ? Clock::Real() : options.clock),
      http_(HttpOptions(options)) {}

// Names with dots do not match the certificates of Amazon's hosts.
std::string ObjectStore::EndpointOf(const ObjectUrl& url) const {
  const ObjectStoreAccess& access = options_.access;
  if (!access.endpoint.empty()) {
    return absl::StrCat(access.endpoint, "/", url.bucket);
  }
  const std::string host =
      absl::StrCat("s3.", access.region, ".amazonaws.com",
                   absl::StartsWith(access.region, "cn-") ? ".cn" : "");
  return absl::StrContains(url.bucket, '.')
             ? absl::StrCat("https://", host, "/", url.bucket)
             : absl::StrCat("https://", url.bucket, ".", host);
}

std::string ObjectStore::RequestUrl(const ObjectUrl& url,
                                    const Query& query) const {
  return absl::StrCat(EndpointOf(url), "/",
                      UrlEscape(url.key, /*keeps_slashes=*/true),
                      query.empty() ? "" : "?", UrlQuery(query));
}

void ObjectStore::Wait(absl::Duration duration) {
  absl::Mutex mutex;
  absl::MutexLock lock(&mutex);
  const auto never = [] { return false; };
  clock_->AwaitWithDeadline(&mutex, absl::Condition(&never),
                            clock_->Now() + duration);
}

absl::Status ObjectStore::ConnectionError(const Task& task,
                                          const absl::Status& status,
                                          int attempt_count) const {
  return absl::Status(
      status.code(),
      absl::StrCat("cannot ", task.verb, " ", task.url.ToString(), " at ",
                   EndpointOf(task.url), ": ", status.message(),
                   attempt_count == 1
                       ? ""
                       : absl::StrCat(" (", attempt_count, " attempts)")));
}

absl::Status ObjectStore::RefusalOf(
    const Task& task, const HttpClient::Response& response) const {
  const std::string code = XmlText(response.body, "Code");
  const std::string way_out = RemedyFor(task.url, code, response);
  return absl::Status(
      CodeOf(code, response),
      absl::StrCat("cannot ", task.verb, " ", task.url.ToString(), " at ",
                   EndpointOf(task.url), ": ", Answer(response),
                   way_out.empty() ? "" : "; ", way_out));
}

absl::StatusOr<HttpClient::Response> ObjectStore::Send(const Task& task) {
  HttpClient::Request request = {.method = task.method,
                                 .url = RequestUrl(task.url, task.query),
                                 .headers = task.headers,
                                 .body = task.body,
                                 .sink = task.sink};
  request.headers.push_back(
      absl::StrCat("x-amz-content-sha256: ", Sha256Of(AsText(task.body))));
  request.headers.push_back("Content-Type: application/octet-stream");
  if (!options_.access.session_token.empty()) {
    request.headers.push_back(
        absl::StrCat("x-amz-security-token: ", options_.access.session_token));
  }
  const absl::Time deadline = clock_->Now() + options_.retry_for;
  const uint64_t seed = std::random_device()();
  for (int attempt = 1;; ++attempt) {
    absl::StatusOr<HttpClient::Response> response = http_.Send(request);
    const bool is_transient =
        response.ok() ? IsTransient(*response) : IsTransient(response.status());
    if (!is_transient && response.ok()) return response;
    const absl::Status status =
        response.ok() ? RefusalOf(task, *response)
                      : ConnectionError(task, response.status(), attempt);
    const absl::Duration delay = BackoffDelay(options_.backoff, attempt, seed);
    if (!is_transient || clock_->Now() + delay > deadline) return status;
    if (attempt == 1) LOG(WARNING) << status.message() << "; trying again";
    Wait(delay);
  }
}

absl::StatusOr<HttpClient::Response> ObjectStore::Do(const Task& task) {
  ASSIGN_OR_RETURN(HttpClient::Response response, Send(task));
  if (!IsSuccess(response)) return RefusalOf(task, response);
  return response;
}

absl::StatusOr<ObjectStore::Piece> ObjectStore::Read(const ObjectUrl& url,
                                                     int64_t offset,
                                                     absl::Span<uint8_t> bytes,
                                                     absl::string_view etag) {
  MUSTER_CHECK(!bytes.empty());
  Task task = {.verb = "read", .url = url, .sink = bytes};
  task.headers.push_back(
      absl::StrCat("Range: bytes=", offset, "-", offset + bytes.size() - 1));
  if (!etag.empty()) task.headers.push_back(absl::StrCat("If-Match: ", etag));
  ASSIGN_OR_RETURN(const HttpClient::Response response, Send(task));
  Piece piece = {.size_bytes = response.sink_bytes,
                 .etag = std::string(response.header("etag"))};
  // "bytes 0-99/1000", or "bytes */0".
  const std::vector<absl::string_view> range =
      absl::StrSplit(response.header("content-range"), '/');
  const bool has_size = range.size() == 2 &&
                        absl::SimpleAtoi(range[1], &piece.object_bytes) &&
                        piece.object_bytes >= 0;
  // An object without bytes has no ranges; some stores leave out its size.
  if (response.status_code == 416 && offset == 0) {
    piece.object_bytes = 0;
    return piece;
  }
  if (!IsSuccess(response)) return RefusalOf(task, response);
  // Some stores send 200 instead of 206 for a part.
  if (response.status_code == 200 && !has_size && offset == 0) {
    piece.object_bytes = static_cast<int64_t>(response.sink_bytes);
    return piece;
  }
  const std::string begin = absl::StrCat("bytes ", offset, "-");
  if (!has_size || !absl::StartsWith(range[0], begin)) {
    return InvalidResponse(url, "it is not the requested part");
  }
  const int64_t expected = std::min<int64_t>(static_cast<int64_t>(bytes.size()),
                                             piece.object_bytes - offset);
  if (static_cast<int64_t>(piece.size_bytes) != expected) {
    return InvalidResponse(
        url, absl::StrCat(piece.size_bytes, " bytes; expected ", expected));
  }
  return piece;
}

absl::Status ObjectStore::Write(const ObjectUrl& url,
                                absl::Span<const uint8_t> bytes) {
  return Do({.verb = "write", .url = url, .method = "PUT", .body = bytes})
      .status();
}

absl::StatusOr<bool> ObjectStore::TryWriteNew(const ObjectUrl& url,
                                              absl::Span<const uint8_t> bytes) {
  const Task task = {.verb = "create",
                     .url = url,
                     .method = "PUT",
                     .headers = {"If-None-Match: *"},
                     .body = bytes};
  ASSIGN_OR_RETURN(const HttpClient::Response response, Send(task));
  if (IsSuccess(response)) return true;
  if (response.status_code == 412) return false;
  const absl::Status refusal = RefusalOf(task, response);
  if (response.status_code != 501) return refusal;
  return absl::UnimplementedError(refusal.message());
}

absl::StatusOr<bool> ObjectStore::HasContent(const ObjectUrl& url,
                                             absl::Span<const uint8_t> bytes) {
  // One byte more than expected shows that the object is longer.
  std::vector<uint8_t> found(bytes.size() + 1);
  ASSIGN_OR_RETURN(const Piece piece,
                   Read(url, 0, absl::MakeSpan(found), /*etag=*/""));
  return piece.size_bytes == bytes.size() &&
         std::equal(bytes.begin(), bytes.end(), found.begin());
}

absl::Status ObjectStore::WriteNew(const ObjectUrl& url,
                                   absl::Span<const uint8_t> bytes) {
  if (url.scheme == "gs") {
    return absl::UnimplementedError(absl::StrCat(
        "cannot create ", url.ToString(),
        " exclusively: Cloud Storage has no conditional writes in the protocol "
        "of S3; use s3:// or a folder that all tasks share"));
  }
  ASSIGN_OR_RETURN(const bool is_written, TryWriteNew(url, bytes));
  if (!is_written) {
    ASSIGN_OR_RETURN(const bool is_own, HasContent(url, bytes));
    return is_own ? absl::OkStatus()
                  : absl::AlreadyExistsError(
                        absl::StrCat(url.ToString(), " exists already"));
  }
  // Some stores ignore the header If-None-Match and replace objects. All others
  // refuse a second write.
  ASSIGN_OR_RETURN(const bool ignores_condition, TryWriteNew(url, bytes));
  if (!ignores_condition) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "cannot create ", url.ToString(), " exclusively: the store at ",
      EndpointOf(url),
      " ignores If-None-Match and replaces objects; use a store with "
      "conditional writes, or a folder that all tasks share"));
}

absl::Status ObjectStore::Remove(const ObjectUrl& url) {
  const absl::Status status =
      Do({.verb = "remove", .url = url, .method = "DELETE"}).status();
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::Status ObjectStore::ListPages(
    const ObjectUrl& folder, absl::string_view delimiter,
    absl::FunctionRef<absl::Status(std::string key)> add) {
  std::string prefix = folder.key;
  if (!prefix.empty() && !absl::EndsWith(prefix, "/")) prefix += '/';
  ObjectUrl bucket = folder;
  bucket.key.clear();
  std::string continuation;
  do {
    Task task = {.verb = "list", .url = bucket};
    task.query = {
        {"list-type", "2"}, {"prefix", prefix}, {"encoding-type", "url"}};
    if (!delimiter.empty()) {
      task.query.emplace_back("delimiter", std::string(delimiter));
    }
    if (!continuation.empty()) {
      task.query.emplace_back("continuation-token", continuation);
    }
    ASSIGN_OR_RETURN(const HttpClient::Response response, Do(task));
    for (const auto& [element, key_name] :
         {std::pair("Contents", "Key"),
          std::pair("CommonPrefixes", "Prefix")}) {
      for (const auto content : XmlElements(response.body, element)) {
        // Spaces are "+" in listings.
        const std::string key = UrlUnescape(
            absl::StrReplaceAll(XmlText(content, key_name), {{"+", " "}}));
        RETURN_IF_ERROR(add(std::string(absl::StripPrefix(key, prefix))));
      }
    }
    const bool is_cut = XmlText(response.body, "IsTruncated") == "true";
    const std::string next = XmlText(response.body, "NextContinuationToken");
    if (is_cut && (next.empty() || next == continuation)) {
      return InvalidResponse(folder, "the listing does not continue");
    }
    continuation = is_cut ? next : "";
  } while (!continuation.empty());
  return absl::OkStatus();
}

absl::StatusOr<ObjectStore::Listing> ObjectStore::List(
    const ObjectUrl& folder) {
  Listing listing;
  RETURN_IF_ERROR(ListPages(folder, "/", [&](std::string key) {
    // Some tools write an empty object in place of a folder.
    if (key.empty()) return absl::OkStatus();
    if (key.back() == '/') {
      key.pop_back();
      listing.folders.push_back(std::move(key));
    } else {
      listing.files.push_back(std::move(key));
    }
    return absl::OkStatus();
  }));
  std::sort(listing.files.begin(), listing.files.end());
  std::sort(listing.folders.begin(), listing.folders.end());
  return listing;
}

absl::StatusOr<std::vector<std::string>> ObjectStore::ListTree(
    const ObjectUrl& folder, size_t count_max) {
  std::vector<std::string> keys;
  RETURN_IF_ERROR(ListPages(folder, "", [&](std::string key) {
    if (keys.size() == count_max) {
      return absl::ResourceExhaustedError(absl::StrCat(
          folder.ToString(), ": more than ", count_max, " objects"));
    }
    if (!key.empty()) keys.push_back(std::move(key));
    return absl::OkStatus();
  }));
  std::sort(keys.begin(), keys.end());
  return keys;
}

absl::StatusOr<std::string> ObjectStore::BeginUpload(const ObjectUrl& url) {
  ASSIGN_OR_RETURN(const HttpClient::Response response,
                   Do({.verb = "write",
                       .url = url,
                       .method = "POST",
                       .query = {{"uploads", ""}}}));
  std::string upload_id = XmlText(response.body, "UploadId");
  if (upload_id.empty()) return InvalidResponse(url, "it names no upload");
  return upload_id;
}

absl::StatusOr<std::string> ObjectStore::UploadPart(
    const ObjectUrl& url, absl::string_view upload_id, int part_number,
    absl::Span<const uint8_t> bytes) {
  ASSIGN_OR_RETURN(const HttpClient::Response response,
                   Do({.verb = "write",
                       .url = url,
                       .method = "PUT",
                       .query = {{"partNumber", absl::StrCat(part_number)},
                                 {"uploadId", std::string(upload_id)}},
                       .body = bytes}));
  std::string tag(response.header("etag"));
  if (tag.empty()) return InvalidResponse(url, "a part has no ETag");
  return tag;
}

absl::Status ObjectStore::CompleteUpload(
    const ObjectUrl& url, absl::string_view upload_id,
    const std::vector<std::string>& part_tags) {
  std::string body = "<CompleteMultipartUpload>";
  for (size_t i = 0; i < part_tags.size(); ++i) {
    absl::StrAppend(&body, "<Part><PartNumber>", i + 1, "</PartNumber><ETag>",
                    XmlEscape(part_tags[i]), "</ETag></Part>");
  }
  body += "</CompleteMultipartUpload>";
  const absl::Status status =
      Do({.verb = "complete",
          .url = url,
          .method = "POST",
          .query = {{"uploadId", std::string(upload_id)}},
          .body = absl::MakeConstSpan(
              reinterpret_cast<const uint8_t*>(body.data()), body.size())})
          .status();
  // An earlier attempt may have completed the upload, and its reply was lost.
  if (absl::IsNotFound(status) && IsComplete(url, part_tags)) {
    return absl::OkStatus();
  }
  return status;
}

// The ETag of an object that was uploaded in parts is the MD5 of the MD5s of
// its parts.
bool ObjectStore::IsComplete(const ObjectUrl& url,
                             const std::vector<std::string>& part_tags) {
  std::string digests;
  for (const std::string& tag : part_tags) {
    absl::string_view hex = tag;
    absl::ConsumePrefix(&hex, "\"");
    absl::ConsumeSuffix(&hex, "\"");
    digests += absl::HexStringToBytes(hex);
  }
  uint8_t digest[EVP_MAX_MD_SIZE];
  size_t digest_bytes = 0;
  if (EVP_Q_digest(nullptr, "MD5", nullptr, digests.data(), digests.size(),
                   digest, &digest_bytes) != 1) {
    return false;
  }
  const std::string expected =
      absl::StrCat("\"",
                   absl::BytesToHexString(absl::string_view(
                       reinterpret_cast<const char*>(digest), digest_bytes)),
                   "-", part_tags.size(), "\"");
  uint8_t first_byte;
  const auto found = Read(url, 0, absl::MakeSpan(&first_byte, 1), "");
  return found.ok() && found->etag == expected;
}

absl::Status ObjectStore::AbortUpload(const ObjectUrl& url,
                                      absl::string_view upload_id) {
  const absl::Status status =
      Do({.verb = "abort the upload of",
          .url = url,
          .method = "DELETE",
          .query = {{"uploadId", std::string(upload_id)}}})
          .status();
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

}  // namespace muster
