#ifndef COMMON_NET_STATUS_PAGE_CLIENT_H_
#define COMMON_NET_STATUS_PAGE_CLIENT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster {

// Gets `path` ("/status.json") from the status pages of a task (HttpServer).
// `address` is "host:port" or "http://host:port/". `token` is sent if it is not
// empty. Answers of more than 64 MiB are refused.
//   kInvalidArgument   the address is invalid
//   kUnavailable       no process listens at the address, or the name is
//                      unknown
//   kDeadlineExceeded  no complete answer within `timeout`
//   kUnauthenticated   the pages need a token, and `token` is not the right one
//   kNotFound          there is no such page
//   kDataLoss          the answer is not HTTP, or has any other status
absl::StatusOr<std::string> GetStatusPage(absl::string_view address,
                                          absl::string_view path,
                                          absl::string_view token,
                                          absl::Duration timeout);

}  // namespace muster

#endif  // COMMON_NET_STATUS_PAGE_CLIENT_H_
