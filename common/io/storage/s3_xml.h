#ifndef COMMON_IO_STORAGE_S3_XML_H_
#define COMMON_IO_STORAGE_S3_XML_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

// Reads the XML of S3's responses: documents without attributes of interest, in
// which no element contains another one of its own name. For other documents
// the results are unspecified, but there is no error and no crash.
// API: https://docs.aws.amazon.com/AmazonS3/latest/API/API_Operations.html
namespace muster {

// Returns the contents of all elements `name`, in order, as they are written.
// They point into `xml`.
std::vector<absl::string_view> XmlElements(absl::string_view xml,
                                           absl::string_view name);

// Returns the text of the first element `name`, with entities replaced; "" if
// there is none.
std::string XmlText(absl::string_view xml, absl::string_view name);

std::string XmlEscape(absl::string_view text);

// Escapes all bytes but letters, digits, "-_.~", and "/" if `keeps_slashes`, as
// signatures require.
std::string UrlEscape(absl::string_view text, bool keeps_slashes);

// Replaces "%41" by "A". Leaves malformed escapes as they are.
std::string UrlUnescape(absl::string_view text);

// Returns "a=1&b=2": a query sorted by name and escaped.
std::string UrlQuery(std::vector<std::pair<std::string, std::string>> query);

}  // namespace muster

#endif  // COMMON_IO_STORAGE_S3_XML_H_
