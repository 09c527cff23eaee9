#include "common/io/storage/http_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/check.h"

namespace muster {
namespace {

// A page of a listing has at most 1000 keys of 1024 bytes.
constexpr size_t kBodyBytesMax = 16 << 20;
// Maximum number of header lines that are kept of one response.
constexpr size_t kHeaderCountMax = 100;
// Maximum number of idle handles, with their connections, that are kept for
// later requests.
constexpr size_t kIdleCountMax = 16;
// Requests that move less mostly wait for the reply of the store.
constexpr size_t kBulkBytesMin = 64 << 10;

// One exchange, for the functions that libcurl calls.
struct Exchange {
  CURL* handle = nullptr;
  const HttpClient::Request* request = nullptr;
  HttpClient::Response response;
  bool is_too_long = false;
};

// Returns fewer than `bytes` to end the transfer.
size_t TakeBody(char* data, size_t, size_t bytes, void* context) {
  Exchange& exchange = *static_cast<Exchange*>(context);
  long status_code = 0;
  curl_easy_getinfo(exchange.handle, CURLINFO_RESPONSE_CODE, &status_code);
  const absl::Span<uint8_t> sink = exchange.request->sink;
  HttpClient::Response& response = exchange.response;
  if (!sink.empty() && status_code / 100 == 2) {
    exchange.is_too_long = bytes > sink.size() - response.sink_bytes;
    if (exchange.is_too_long) return 0;
    std::memcpy(sink.data() + response.sink_bytes, data, bytes);
    response.sink_bytes += bytes;
    return bytes;
  }
  exchange.is_too_long = bytes > kBodyBytesMax - response.body.size();
  if (exchange.is_too_long) return 0;
  response.body.append(data, bytes);
  return bytes;
}

size_t TakeHeader(char* data, size_t, size_t bytes, void* context) {
  HttpClient::Response& response = static_cast<Exchange*>(context)->response;
  const absl::string_view line(data, bytes);
  // The final response comes after "100 Continue".
  if (absl::StartsWith(line, "HTTP/")) response.headers.clear();
  const size_t colon = line.find(':');
  if (colon == absl::string_view::npos ||
      response.headers.size() >= kHeaderCountMax) {
    return bytes;
  }
  response.headers[absl::AsciiStrToLower(line.substr(0, colon))] =
      std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
  return bytes;
}

absl::Status Failure(CURLcode code, const char* detail) {
  const std::string message =
      *detail == '\0' ? curl_easy_strerror(code) : std::string(detail);
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return absl::DeadlineExceededError(message);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return absl::FailedPreconditionError(absl::StrCat(
          message,
          "; AWS_CA_BUNDLE can name a file with the certificate of its CA"));
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return absl::InvalidArgumentError(message);
    default:
      return absl::UnavailableError(message);
  }
}

// libcurl is not thread-safe before its first handle exists.
void InitializeOnce() {
  static const CURLcode initialized = curl_global_init(CURL_GLOBAL_DEFAULT);
  MUSTER_CHECK(initialized == CURLE_OK);
}

void SetMethod(CURL* handle, const HttpClient::Request& request) {
  if (request.method == "GET") {
    curl_easy_setopt(handle, CURLOPT_HTTPGET, 1L);
    return;
  }
  if (request.method != "DELETE") {
    // Without data, libcurl would read standard input.
    const void* data = request.body.data();
    if (request.body.empty()) data = "";
    curl_easy_setopt(handle, CURLOPT_POSTFIELDS, data);
    curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
  }
  curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, request.method.c_str());
}

}  // namespace

absl::string_view HttpClient::Response::header(absl::string_view name) const {
  const auto found = headers.find(std::string(name));
  return found == headers.end() ? absl::string_view() : found->second;
}

HttpClient::HttpClient(Options options) : options_(std::move(options)) {
  InitializeOnce();
}

HttpClient::~HttpClient() {
  for (void* const handle : idle_) curl_easy_cleanup(handle);
}

void* HttpClient::TakeHandle() {
  {
    absl::MutexLock lock(&mutex_);
    if (!idle_.empty()) {
      void* const handle = idle_.back();
      idle_.pop_back();
      return handle;
    }
  }
  void* const handle = curl_easy_init();
  MUSTER_CHECK(handle != nullptr);
  return handle;
}

void HttpClient::ReturnHandle(void* handle) {
  // Keeps the connections, but no pointer to the request.
  curl_easy_reset(handle);
  {
    absl::MutexLock lock(&mutex_);
    if (idle_.size() < kIdleCountMax) {
      idle_.push_back(handle);
      return;
    }
  }
  curl_easy_cleanup(handle);
}

absl::StatusOr<HttpClient::Response> HttpClient::Send(const Request& request) {
  CURL* const handle = TakeHandle();
  const absl::Cleanup put_back = [&] { ReturnHandle(handle); };
  Exchange exchange = {.handle = handle, .request = &request};
  curl_slist* headers = nullptr;
  for (const std::string& header : request.headers) {
    headers = curl_slist_append(headers, header.c_str());
  }
  // Without this, libcurl asks for permission to send a large body, and waits a
  // second if the store does not reply to that.
  headers = curl_slist_append(headers, "Expect:");
  const absl::Cleanup free_headers = [&] { curl_slist_free_all(headers); };
  char detail[CURL_ERROR_SIZE] = "";

  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_PATH_AS_IS, 1L);
  SetMethod(handle, request);
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(handle, CURLOPT_AWS_SIGV4,
                   absl::StrCat("aws:amz:", options_.region, ":s3").c_str());
  curl_easy_setopt(handle, CURLOPT_USERNAME, options_.access_key_id.c_str());
  curl_easy_setopt(handle, CURLOPT_PASSWORD,
                   options_.secret_access_key.c_str());
  if (!options_.ca_file.empty()) {
    curl_easy_setopt(handle, CURLOPT_CAINFO, options_.ca_file.c_str());
  }
  curl_easy_setopt(
      handle, CURLOPT_CONNECTTIMEOUT_MS,
      static_cast<long>(absl::ToInt64Milliseconds(options_.connect_timeout)));
  const bool is_bulk =
      std::max(request.body.size(), request.sink.size()) >= kBulkBytesMin;
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT,
                   is_bulk ? long{kBulkBytesPerSecondMin} : 1L);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME,
                   static_cast<long>(std::max<int64_t>(
                       1, absl::ToInt64Seconds(options_.stall_timeout))));
  curl_easy_setopt(handle, CURLOPT_BUFFERSIZE, 512L << 10);
  curl_easy_setopt(handle, CURLOPT_UPLOAD_BUFFERSIZE, 512L << 10);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, &TakeBody);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &exchange);
  curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, &TakeHeader);
  curl_easy_setopt(handle, CURLOPT_HEADERDATA, &exchange);
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, detail);

  const CURLcode code = curl_easy_perform(handle);
  if (exchange.is_too_long) {
    return absl::DataLossError("the response is longer than requested");
  }
  if (code != CURLE_OK) return Failure(code, detail);
  long status_code = 0;
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status_code);
  exchange.response.status_code = static_cast<int>(status_code);
  return std::move(exchange.response);
}

}  // namespace muster
