#include "deploy/musterctl/job_client.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/net/cluster/task_methods.h"
#include "common/net/rpc/channel.h"
#include "common/net/rpc/network.h"
#include "common/net/rpc/tls_network.h"
#include "common/net/status/page_client.h"
#include "proto/job_control.pb.h"

namespace muster {
namespace {

constexpr char kOperator[] = "operator";

// The address where a task accepts requests, from its /status.json.
struct ControlAddress {
  std::string address;
  std::string role;
  int index = 0;
};

absl::StatusOr<ControlAddress> ParseControlAddress(
    const std::string& status, const std::string& status_address) {
  const nlohmann::json json =
      nlohmann::json::parse(status, nullptr, /*allow_exceptions=*/false);
  const auto process = json.is_object() ? json.find("process") : json.end();
  if (process == json.end() || !process->is_object() ||
      !process->contains("role") || !(*process)["role"].is_string() ||
      !process->contains("index") || !(*process)["index"].is_number_integer()) {
    return absl::DataLossError(absl::StrCat(
        status_address, " does not answer with the status of a task"));
  }
  ControlAddress control = {
      .address = "", .role = (*process)["role"], .index = (*process)["index"]};
  if (json.contains("control") && json["control"].is_string()) {
    control.address = json["control"];
    return control;
  }
  return absl::FailedPreconditionError(absl::StrCat(
      control.role, " ", control.index, " at ", status_address,
      " takes no requests. They go to the task that leads the job: the chief, "
      "or worker 0 where there is none. Start it with --control_port, and name "
      "its status pages in --status"));
}

}  // namespace

JobClient::JobClient(Options options) : options_(std::move(options)) {}

absl::StatusOr<std::string> JobClient::Status() const {
  return GetStatusPage(options_.status_address, "/status.json", options_.token,
                       options_.timeout);
}

template <typename Response, typename Request>
absl::StatusOr<Response> JobClient::Ask(absl::string_view method,
                                        const Request& request,
                                        absl::Duration timeout) const {
  ASSIGN_OR_RETURN(const std::string status, Status());
  ASSIGN_OR_RETURN(const ControlAddress control,
                   ParseControlAddress(status, options_.status_address));
  TaskIdentity self = {
      .task_type = kOperator, .task_index = 0, .incarnation = RandomIdentity()};
  std::unique_ptr<Network> tls_network;
  if (!options_.tls.empty()) {
    ASSIGN_OR_RETURN(std::unique_ptr<TlsContext> tls,
                     TlsContext::Load(options_.tls));
    self.task_type = tls->self().role;
    self.task_index = tls->self().index;
    tls_network = MakeTlsNetwork(std::move(tls));
  }
  Network* const network =
      tls_network == nullptr ? Network::Grpc() : tls_network.get();
  const std::unique_ptr<Channel> channel =
      network->Connect({.address = control.address,
                        .peer_task_type = control.role,
                        .peer_task_index = control.index,
                        .caller = self,
                        .job_id = ""});
  return channel->Call<Response>(method, request, {.timeout = timeout});
}

absl::StatusOr<std::string> JobClient::Checkpoint() const {
  ASSIGN_OR_RETURN(
      const auto response,
      Ask<proto::JobControlResponse>(
          kCheckpointJobMethod, proto::CheckpointRequest(), options_.timeout));
  return response.checkpoint();
}

absl::Status JobClient::Drain(absl::string_view task) const {
  proto::DrainRequest request;
  request.set_task(std::string(task));
  return Ask<proto::JobControlResponse>(kDrainTaskMethod, request,
                                        options_.timeout)
      .status();
}

absl::Status JobClient::Stop() const {
  return Ask<proto::JobControlResponse>(kStopJobMethod, proto::StopRequest(),
                                        options_.timeout)
      .status();
}

absl::StatusOr<std::string> JobClient::Trace(absl::Duration duration) const {
  proto::JobTraceRequest request;
  request.set_duration_ms(absl::ToInt64Milliseconds(duration));
  ASSIGN_OR_RETURN(auto response,
                   Ask<proto::JobTraceResponse>(kTraceJobMethod, request,
                                                options_.timeout + duration));
  return std::move(*response.mutable_trace());
}

}  // namespace muster
