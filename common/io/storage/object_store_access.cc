#include "common/io/storage/object_store_access.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/small_file.h"

namespace muster {
namespace {

constexpr absl::string_view kGoogleEndpoint = "https://storage.googleapis.com";
constexpr absl::string_view kDefaultRegion = "us-east-1";

// Reads environment variables. First() returns the first of the variables that
// is set and not empty.
class Variables {
 public:
  explicit Variables(const EnvironmentReader& environment)
      : environment_(environment) {}

  std::string First(std::initializer_list<const char*> names) const {
    for (const char* const name : names) {
      const char* const value = environment_(name);
      if (value != nullptr && *value != '\0') return value;
    }
    return "";
  }

 private:
  const EnvironmentReader& environment_;
};

using Profile = std::map<std::string, std::string>;

// Returns the section `name` of a file of "[section]" and "key = value" lines;
// nothing if the file or the section does not exist.
std::optional<Profile> ReadProfile(const std::string& path,
                                   absl::string_view name) {
  const std::string lines = ReadSmallFile(path).value_or("");
  std::optional<Profile> profile;
  bool is_inside = false;
  for (const absl::string_view line : absl::StrSplit(lines, '\n')) {
    absl::string_view text = absl::StripAsciiWhitespace(line);
    if (text.empty() || text.front() == '#' || text.front() == ';') continue;
    if (absl::ConsumePrefix(&text, "[")) {
      absl::ConsumeSuffix(&text, "]");
      is_inside = absl::StripAsciiWhitespace(text) == name;
      if (is_inside && !profile.has_value()) profile.emplace();
      continue;
    }
    const size_t equals = text.find('=');
    if (!is_inside || equals == absl::string_view::npos) continue;
    const auto key = absl::StripAsciiWhitespace(text.substr(0, equals));
    const auto value = absl::StripAsciiWhitespace(text.substr(equals + 1));
    (*profile)[absl::AsciiStrToLower(key)] = std::string(value);
  }
  return profile;
}

absl::Status MissingCredentials(absl::string_view scheme,
                                absl::string_view file,
                                absl::string_view profile) {
  return absl::FailedPreconditionError(absl::StrCat(
      "there are no credentials for ", scheme, "://: set ",
      scheme == "gs" ? "GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY (an HMAC key "
                       "of Google's Cloud Storage), or "
                     : "",
      "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or put them into the "
      "profile \"",
      profile, "\" of ", file));
}

absl::Status ReadCredentialsFile(absl::string_view scheme,
                                 const Variables& variables,
                                 ObjectStoreAccess* access) {
  std::string file = variables.First({"AWS_SHARED_CREDENTIALS_FILE"});
  if (file.empty()) {
    file = absl::StrCat(variables.First({"HOME"}), "/.aws/credentials");
  }
  std::string name = variables.First({"AWS_PROFILE"});
  if (name.empty()) name = "default";
  std::optional<Profile> profile = ReadProfile(file, name);
  if (!profile.has_value()) return MissingCredentials(scheme, file, name);
  access->access_key_id = (*profile)["aws_access_key_id"];
  access->secret_access_key = (*profile)["aws_secret_access_key"];
  access->session_token = (*profile)["aws_session_token"];
  if (access->region.empty()) access->region = (*profile)["region"];
  if (!access->access_key_id.empty() && !access->secret_access_key.empty()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the profile \"", name, "\" of ", file, " has no ",
                   access->access_key_id.empty() ? "aws_access_key_id"
                                                 : "aws_secret_access_key"));
}

absl::Status FindCredentials(absl::string_view scheme,
                             const Variables& variables,
                             ObjectStoreAccess* access) {
  const bool has_google_keys =
      scheme == "gs" && !variables.First({"GS_ACCESS_KEY_ID"}).empty();
  const char* const id_name =
      has_google_keys ? "GS_ACCESS_KEY_ID" : "AWS_ACCESS_KEY_ID";
  const char* const secret_name =
      has_google_keys ? "GS_SECRET_ACCESS_KEY" : "AWS_SECRET_ACCESS_KEY";
  access->access_key_id = variables.First({id_name});
  access->secret_access_key = variables.First({secret_name});
  if (access->access_key_id.empty() && access->secret_access_key.empty()) {
    return ReadCredentialsFile(scheme, variables, access);
  }
  if (access->access_key_id.empty() || access->secret_access_key.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(access->access_key_id.empty() ? secret_name : id_name,
                     " is set, but not ",
                     access->access_key_id.empty() ? id_name : secret_name,
                     ": ", scheme, ":// needs both"));
  }
  if (!has_google_keys) {
    access->session_token = variables.First({"AWS_SESSION_TOKEN"});
  }
  return absl::OkStatus();
}

// Rejects characters that are not printable: a line break would begin another
// header.
absl::Status CheckCredentials(const ObjectStoreAccess& access) {
  const auto is_printable = [](const std::string& text) {
    return std::all_of(text.begin(), text.end(),
                       [](unsigned char c) { return absl::ascii_isgraph(c); });
  };
  if (is_printable(access.access_key_id) &&
      is_printable(access.secret_access_key) &&
      is_printable(access.session_token) && is_printable(access.region)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "the access key, the secret key, the session token or the region of the "
      "object store has a space or a control character in it");
}

absl::Status FindEndpoint(absl::string_view scheme, const Variables& variables,
                          ObjectStoreAccess* access) {
  access->endpoint =
      scheme == "gs"
          ? variables.First({"GS_ENDPOINT_URL"})
          : variables.First({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
  if (access->endpoint.empty() && scheme == "gs") {
    access->endpoint = std::string(kGoogleEndpoint);
  }
  while (absl::EndsWith(access->endpoint, "/")) access->endpoint.pop_back();
  absl::string_view host = access->endpoint;
  const bool is_valid =
      (absl::ConsumePrefix(&host, "https://") ||
       absl::ConsumePrefix(&host, "http://")) &&
      host.find_first_of("@?# \t\r\n") == absl::string_view::npos &&
      !host.empty();
  if (access->endpoint.empty() || is_valid) return absl::OkStatus();
  // The message does not contain the URL, which may have a password.
  return absl::InvalidArgumentError(absl::StrCat(
      scheme == "gs" ? "GS_ENDPOINT_URL" : "AWS_ENDPOINT_URL",
      " is not a URL such as https://storage.example:9000, without a user, a "
      "password or a query"));
}

}  // namespace

absl::StatusOr<ObjectStoreAccess> FindObjectStoreAccess(
    absl::string_view scheme, const EnvironmentReader& environment) {
  const Variables variables(environment);
  ObjectStoreAccess access;
  access.region = variables.First({"AWS_REGION", "AWS_DEFAULT_REGION"});
  RETURN_IF_ERROR(FindEndpoint(scheme, variables, &access));
  RETURN_IF_ERROR(FindCredentials(scheme, variables, &access));
  if (scheme == "gs") access.region = "auto";
  if (access.region.empty()) access.region = std::string(kDefaultRegion);
  RETURN_IF_ERROR(CheckCredentials(access));
  access.ca_file = variables.First({"AWS_CA_BUNDLE"});
  return access;
}

}  // namespace muster
