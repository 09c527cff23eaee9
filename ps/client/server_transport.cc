#include "ps/client/server_transport.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "ps/client/methods.h"

namespace muster {
namespace {

absl::Status BadAnswer(absl::string_view why) {
  return absl::InternalError(
      absl::StrCat("a parameter server's answer does not fit what it was "
                   "asked: ",
                   why));
}

class ChannelTransport final : public ServerTransport {
 public:
  explicit ChannelTransport(Channel* channel) : channel_(channel) {}

  void StartExchange(const OutgoingExchange& exchange, Done done) override {
    channel_->StartCall(
        kExchangeMethod,
        Message{exchange.request->SerializeAsString(), *exchange.tensors},
        {.timeout = exchange.timeout},
        [exchange, done = std::move(done)](
            absl::StatusOr<ReceivedMessage> message) mutable {
          if (!message.ok()) {
            done(message.status());
          } else {
            done(SortAnswer(exchange, *message, {}));
          }
        });
  }

 private:
  Channel* const channel_;
};

}  // namespace

std::unique_ptr<ServerTransport> MakeChannelTransport(Channel* channel) {
  return std::make_unique<ChannelTransport>(channel);
}

absl::StatusOr<ExchangeAnswer> SortAnswer(
    const OutgoingExchange& exchange, const ReceivedMessage& message,
    std::vector<std::optional<ReceivedTensor>> in_segment) {
  const proto::ExchangeRequest& request = *exchange.request;
  ExchangeAnswer answer;
  ASSIGN_OR_RETURN(answer.response,
                   message.ParseBody<proto::ExchangeResponse>());
  if (answer.response.pull_versions_size() != request.pull_handles_size()) {
    return BadAnswer(absl::StrCat(answer.response.pull_versions_size(),
                                  " versions for ", request.pull_handles_size(),
                                  " pulls"));
  }
  const int gather_count = request.gather_handles_size();
  answer.tensors.resize(gather_count + request.pull_handles_size());
  absl::Span<const ReceivedTensor> beside = message.tensors();
  for (size_t i = 0; i < answer.tensors.size(); ++i) {
    const int pull = static_cast<int>(i) - gather_count;
    if (pull >= 0 && answer.response.pull_versions(pull) ==
                         request.pull_held_versions(pull)) {
      continue;
    }
    if (!in_segment.empty() && in_segment[i].has_value()) {
      answer.tensors[i] = std::move(in_segment[i]);
      continue;
    }
    const TensorType& expected = (*exchange.slots)[i].type;
    if (beside.empty()) {
      return BadAnswer(absl::StrCat("expected a ", expected.ToString()));
    }
    if (beside.front().type() != expected) {
      return BadAnswer(absl::StrCat("expected a ", expected.ToString(),
                                    "; got a ",
                                    beside.front().type().ToString()));
    }
    answer.tensors[i] = beside.front();
    beside.remove_prefix(1);
  }
  if (!beside.empty()) return BadAnswer("there are more tensors than expected");
  return answer;
}

}  // namespace muster
