#include "common/io/storage/testing/s3_server.h"

#include <civetweb.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/io/storage/s3_xml.h"
#include "common/io/storage/testing/s3_signature.h"

namespace muster {
namespace {

constexpr absl::Duration kWakeInterval = absl::Milliseconds(10);

struct Answer {
  int status_code = 200;
  std::string body;
  std::vector<std::string> headers;
};

std::string Md5(absl::string_view bytes) {
  uint8_t digest[EVP_MAX_MD_SIZE];
  size_t size = 0;
  EVP_Q_digest(nullptr, "MD5", nullptr, bytes.data(), bytes.size(), digest,
               &size);
  return std::string(reinterpret_cast<const char*>(digest), size);
}

std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", text, "\"");
}

Answer ErrorAnswer(int status_code, absl::string_view code) {
  return {.status_code = status_code,
          .body = absl::StrCat("<?xml version=\"1.0\"?><Error><Code>", code,
                               "</Code><Message>This is ", code,
                               ".</Message></Error>")};
}

int StatusOfSignatureError(absl::string_view code) {
  return code == "AuthorizationHeaderMalformed" ||
                 code == "XAmzContentSHA256Mismatch"
             ? 400
             : 403;
}

struct Object {
  std::string content;
  std::string etag;  // With quotes.
};

struct Upload {
  std::string key;
  std::map<int, std::string> parts;
};

}  // namespace

class S3Server::Implementation {
 public:
  explicit Implementation(const Options& options) : options_(options) {}

  // The accept loop checks whether it should stop only every two seconds and at
  // each connection, so this connects to it.
  ~Implementation() {
    if (context_ == nullptr) return;
    absl::Notification has_stopped;
    std::thread stopper([this, &has_stopped] {
      mg_stop(context_);
      has_stopped.Notify();
    });
    while (!has_stopped.WaitForNotificationWithTimeout(kWakeInterval)) {
      char error[256] = {};
      mg_connection* const connection = mg_connect_client(
          "127.0.0.1", port_, /*use_ssl=*/0, error, sizeof(error));
      if (connection != nullptr) mg_close_connection(connection);
    }
    stopper.join();
  }

  absl::Status Start() {
    static const unsigned initialized = mg_init_library(0);
    (void)initialized;
    std::vector<const char*> settings = {
        "listening_ports", "127.0.0.1:0", "num_threads",       "16",
        "decode_url",      "no",          "enable_keep_alive", "no"};
    settings.push_back(nullptr);
    mg_callbacks callbacks = {};
    callbacks.begin_request = [](mg_connection* connection) {
      return static_cast<Implementation*>(
                 mg_get_request_info(connection)->user_data)
          ->Handle(connection);
    };
    callbacks.log_message = [](const mg_connection*, const char*) { return 1; };
    callbacks.log_access = [](const mg_connection*, const char*) { return 1; };
    context_ = mg_start(&callbacks, this, settings.data());
    if (context_ == nullptr) {
      return absl::UnavailableError("the S3 server of the test cannot start");
    }
    mg_server_port port = {};
    mg_get_server_ports(context_, 1, &port);
    port_ = port.port;
    return absl::OkStatus();
  }

  // Returns a status code, so that the library does not answer. The connection
  // is closed afterwards, whether or not something was sent.
  int Handle(mg_connection* connection) {
    const mg_request_info& info = *mg_get_request_info(connection);
    SignedRequest signed_request = {
        .method = info.request_method,
        .path = info.local_uri_raw,
        .query = info.query_string == nullptr ? "" : info.query_string};
    for (int i = 0; i < info.num_headers; ++i) {
      signed_request.headers[absl::AsciiStrToLower(info.http_headers[i].name)] =
          info.http_headers[i].value;
    }
    std::string body(std::max<int64_t>(0, info.content_length), '\0');
    for (size_t begin = 0; begin < body.size();) {
      const int count =
          mg_read(connection, body.data() + begin, body.size() - begin);
      if (count <= 0) return 400;  // The client has disconnected.
      begin += count;
    }
    Request request = Parse(signed_request);
    request.body_bytes = body.size();
    request.expects_continue = signed_request.headers.contains("expect");
    const Action action = NextAction(request);
    if (action == Action::kReportOverload) {
      return Send(connection, ErrorAnswer(503, "SlowDown"));
    }
    if (action == Action::kCutBeforeServing) return 500;
    if (action == Action::kDamageRequestBody) body[body.size() / 2] ^= 1;
    signed_request.body = body;
    const std::string problem = Verify(signed_request);
    if (!problem.empty()) {
      return Send(connection,
                  ErrorAnswer(StatusOfSignatureError(problem), problem));
    }
    const Answer answer = Serve(request, signed_request);
    if (action == Action::kCutAfterServing) return 500;
    return Send(connection, answer, action == Action::kTrickle);
  }

 private:
  friend class S3Server;

  static int Send(mg_connection* connection, const Answer& answer,
                  bool trickles = false) {
    std::string head = absl::StrCat(
        "HTTP/1.1 ", answer.status_code, " ",
        mg_get_response_code_text(connection, answer.status_code),
        "\r\nConnection: close\r\nContent-Length: ", answer.body.size(),
        "\r\n");
    for (const std::string& header : answer.headers) {
      absl::StrAppend(&head, header, "\r\n");
    }
    head += "\r\n";
    mg_write(connection, head.data(), head.size());
    if (trickles) {
      Trickle(connection, answer.body);
    } else {
      mg_write(connection, answer.body.data(), answer.body.size());
    }
    return answer.status_code;
  }

  // Sends the body slowly, until the client closes the connection.
  static void Trickle(mg_connection* connection, absl::string_view body) {
    constexpr size_t kStepBytes = 100;
    absl::Notification never;
    while (!body.empty() &&
           !never.WaitForNotificationWithTimeout(absl::Milliseconds(100))) {
      const absl::string_view step = body.substr(0, kStepBytes);
      if (mg_write(connection, step.data(), step.size()) <= 0) return;
      body.remove_prefix(step.size());
    }
  }

  Request Parse(const SignedRequest& signed_request) const {
    Request request = {.method = signed_request.method};
    for (const absl::string_view entry :
         absl::StrSplit(signed_request.query, '&', absl::SkipEmpty())) {
      const std::pair<absl::string_view, absl::string_view> parts =
          absl::StrSplit(entry, absl::MaxSplits('=', 1));
      request.query[UrlUnescape(parts.first)] = UrlUnescape(parts.second);
    }
    const std::string path = UrlUnescape(signed_request.path);
    absl::string_view key = path;
    absl::ConsumePrefix(&key, absl::StrCat("/", kBucket, "/"));
    request.key = std::string(key);
    return request;
  }

  std::string Verify(const SignedRequest& request) const {
    const SigningKey key = {kAccessKeyId, kSecretAccessKey, kRegion};
    if (!options_.session_token.empty()) {
      const auto token = request.headers.find("x-amz-security-token");
      if (token == request.headers.end() ||
          token->second != options_.session_token) {
        return "InvalidToken";
      }
    }
    return VerifySignature(request, key, absl::Now());
  }

  Action NextAction(const Request& request) {
    Script script;
    {
      absl::MutexLock lock(&mutex_);
      ++request_count_;
      script = script_;
    }
    return script == nullptr ? Action::kServe : script(request);
  }

  Answer Serve(Request request, const SignedRequest& signed_request)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    if (!absl::StartsWith(signed_request.path,
                          absl::StrCat("/", kBucket, "/"))) {
      return ErrorAnswer(404, "NoSuchBucket");
    }
    absl::MutexLock lock(&mutex_);
    if (request.query.contains("list-type")) return List(request);
    if (request.query.contains("uploads")) return BeginUpload(request);
    if (request.query.contains("uploadId")) {
      return ServeUpload(request, signed_request.body);
    }
    if (request.method == "PUT") {
      const bool is_refused =
          options_.has_conditional_writes &&
          signed_request.headers.contains("if-none-match") &&
          objects_.contains(request.key);
      return is_refused ? ErrorAnswer(412, "PreconditionFailed")
                        : Put(request.key, signed_request.body);
    }
    if (request.method == "DELETE") {
      objects_.erase(request.key);
      return {.status_code = 204};
    }
    return Read(request, signed_request);
  }

  Answer Put(const std::string& key, absl::string_view content)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::string etag = Quoted(absl::BytesToHexString(Md5(content)));
    objects_[key] = {std::string(content), etag};
    return {.headers = {absl::StrCat("ETag: ", etag)}};
  }

  Answer Read(const Request& request, const SignedRequest& signed_request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto found = objects_.find(request.key);
    if (found == objects_.end()) return ErrorAnswer(404, "NoSuchKey");
    const auto& [content, etag] = found->second;
    const auto match = signed_request.headers.find("if-match");
    if (match != signed_request.headers.end() && match->second != etag) {
      return ErrorAnswer(412, "PreconditionFailed");
    }
    const auto range = signed_request.headers.find("range");
    if (range == signed_request.headers.end()) {
      return {.body = content, .headers = {absl::StrCat("ETag: ", etag)}};
    }
    absl::string_view text = range->second;
    absl::ConsumePrefix(&text, "bytes=");
    const std::vector<absl::string_view> ends = absl::StrSplit(text, '-');
    size_t begin = 0;
    size_t last = 0;
    if (ends.size() != 2 || !absl::SimpleAtoi(ends[0], &begin) ||
        !absl::SimpleAtoi(ends[1], &last) || begin > last) {
      return ErrorAnswer(400, "InvalidArgument");
    }
    if (begin >= content.size()) {
      Answer answer = ErrorAnswer(416, "InvalidRange");
      answer.headers.push_back(
          absl::StrCat("Content-Range: bytes */", content.size()));
      return answer;
    }
    last = std::min(last, content.size() - 1);
    return {.status_code = 206,
            .body = content.substr(begin, last - begin + 1),
            .headers = {absl::StrCat("ETag: ", etag),
                        absl::StrCat("Content-Range: bytes ", begin, "-", last,
                                     "/", content.size())}};
  }

  Answer List(Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::string& prefix = request.query["prefix"];
    const std::string& delimiter = request.query["delimiter"];
    const std::string& after = request.query["continuation-token"];
    std::string entries;
    std::set<std::string> folders;
    std::string last;
    size_t count = 0;
    bool is_cut = false;
    for (const auto& [key, object] : objects_) {
      if (!absl::StartsWith(key, prefix)) continue;
      const size_t end = delimiter.empty() ? std::string::npos
                                           : key.find(delimiter, prefix.size());
      const std::string name =
          end == std::string::npos ? key : key.substr(0, end + 1);
      if (name <= after || folders.contains(name)) continue;
      is_cut = count == options_.page_keys_max;
      if (is_cut) break;
      ++count;
      last = name;
      const std::string escaped = absl::StrReplaceAll(
          UrlEscape(name, /*keeps_slashes=*/true), {{"%20", "+"}});
      if (end == std::string::npos) {
        absl::StrAppend(&entries, "<Contents><Key>", escaped, "</Key><Size>",
                        object.content.size(), "</Size></Contents>");
      } else {
        folders.insert(name);
        absl::StrAppend(&entries, "<CommonPrefixes><Prefix>", escaped,
                        "</Prefix></CommonPrefixes>");
      }
    }
    return {
        .body = absl::StrCat(
            "<?xml version=\"1.0\"?><ListBucketResult><Name>", kBucket,
            "</Name><IsTruncated>", is_cut ? "true" : "false", "</IsTruncated>",
            is_cut ? absl::StrCat("<NextContinuationToken>", XmlEscape(last),
                                  "</NextContinuationToken>")
                   : "",
            entries, "</ListBucketResult>")};
  }

  Answer BeginUpload(const Request& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::string id = absl::StrCat("upload/", ++upload_number_, "+");
    uploads_[id].key = request.key;
    return {.body = absl::StrCat(
                "<InitiateMultipartUploadResult><UploadId>", XmlEscape(id),
                "</UploadId></InitiateMultipartUploadResult>")};
  }

  Answer ServeUpload(Request& request, absl::string_view body)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto upload = uploads_.find(request.query["uploadId"]);
    if (upload == uploads_.end() || upload->second.key != request.key) {
      return ErrorAnswer(404, "NoSuchUpload");
    }
    if (request.method == "DELETE") {
      uploads_.erase(upload);
      return {.status_code = 204};
    }
    if (request.method == "PUT") {
      int number = 0;
      if (!absl::SimpleAtoi(request.query["partNumber"], &number) ||
          number < 1 || number > 10000) {
        return ErrorAnswer(400, "InvalidArgument");
      }
      upload->second.parts[number] = std::string(body);
      return {.headers = {absl::StrCat(
                  "ETag: ", Quoted(absl::BytesToHexString(Md5(body))))}};
    }
    return CompleteUpload(upload->first, body);
  }

  Answer CompleteUpload(const std::string& id, absl::string_view body)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    constexpr size_t kPartBytesMin = 5 << 20;
    const Upload& upload = uploads_[id];
    std::string content;
    std::string digests;
    const auto parts = XmlElements(body, "Part");
    for (const absl::string_view part : parts) {
      int number = 0;
      const auto found = absl::SimpleAtoi(XmlText(part, "PartNumber"), &number)
                             ? upload.parts.find(number)
                             : upload.parts.end();
      if (found == upload.parts.end() ||
          XmlText(part, "ETag") !=
              Quoted(absl::BytesToHexString(Md5(found->second)))) {
        return ErrorAnswer(400, "InvalidPart");
      }
      if (part != parts.back() && found->second.size() < kPartBytesMin) {
        return ErrorAnswer(400, "EntityTooSmall");
      }
      content += found->second;
      digests += Md5(found->second);
    }
    objects_[upload.key] = {
        std::move(content),
        Quoted(absl::StrCat(absl::BytesToHexString(Md5(digests)), "-",
                            parts.size()))};
    uploads_.erase(id);
    return {.body = "<CompleteMultipartUploadResult/>"};
  }

  const Options options_;
  mg_context* context_ = nullptr;
  int port_ = 0;

  mutable absl::Mutex mutex_;
  Script script_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Object> objects_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Upload> uploads_ ABSL_GUARDED_BY(mutex_);
  int upload_number_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t request_count_ ABSL_GUARDED_BY(mutex_) = 0;
};

absl::StatusOr<std::unique_ptr<S3Server>> S3Server::Start(
    const Options& options) {
  auto implementation = std::make_unique<Implementation>(options);
  RETURN_IF_ERROR(implementation->Start());
  return std::unique_ptr<S3Server>(new S3Server(std::move(implementation)));
}

S3Server::S3Server(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}

S3Server::~S3Server() = default;

std::string S3Server::endpoint() const {
  return absl::StrCat("http://127.0.0.1:", implementation_->port_);
}

std::map<std::string, std::string> S3Server::Environment() const {
  return {{"AWS_ENDPOINT_URL", endpoint()},
          {"AWS_ACCESS_KEY_ID", kAccessKeyId},
          {"AWS_SECRET_ACCESS_KEY", kSecretAccessKey},
          {"AWS_REGION", kRegion}};
}

void S3Server::set_script(Script script) {
  absl::MutexLock lock(&implementation_->mutex_);
  implementation_->script_ = std::move(script);
}

std::map<std::string, std::string> S3Server::Objects() const {
  absl::MutexLock lock(&implementation_->mutex_);
  std::map<std::string, std::string> objects;
  for (const auto& [key, object] : implementation_->objects_) {
    objects[key] = object.content;
  }
  return objects;
}

void S3Server::Set(absl::string_view key, absl::string_view content) {
  absl::MutexLock lock(&implementation_->mutex_);
  implementation_->Put(std::string(key), content);
}

size_t S3Server::open_upload_count() const {
  absl::MutexLock lock(&implementation_->mutex_);
  return implementation_->uploads_.size();
}

size_t S3Server::request_count() const {
  absl::MutexLock lock(&implementation_->mutex_);
  return implementation_->request_count_;
}

}  // namespace muster
