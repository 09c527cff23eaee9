#ifndef COMMON_NET_STATUS_STATUS_PAGES_H_
#define COMMON_NET_STATUS_STATUS_PAGES_H_

#include <map>
#include <string>

#include "common/net/status/http_server.h"
#include "common/net/status/status_json.h"

namespace muster {

// Returns the pages of a process for HttpServer:
//
//   /livez        200 as long as the process answers
//   /readyz       200 once the process takes part in a job; otherwise 503
//   /metrics      all metrics, in Prometheus' text format
//   /status.json  all StatusSources
//   /             a page that shows /status.json and refreshes itself
//
// All but /metrics and /status.json are public: they contain nothing private.
// The page asks for the token if one is required. It loads nothing from other
// servers.
std::map<std::string, HttpPage> StatusPages(ProcessStatus process);

}  // namespace muster

#endif  // COMMON_NET_STATUS_STATUS_PAGES_H_
