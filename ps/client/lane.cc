#include "ps/client/lane.h"

#include <utility>

#include "ps/client/methods.h"

namespace muster {
namespace {

class ChannelLane final : public Lane {
 public:
  explicit ChannelLane(Channel* channel) : channel_(channel) {}

  void StartExchange(const proto::ExchangeRequest& request,
                     const std::vector<Tensor>& tensors, absl::Duration timeout,
                     Done done) override {
    channel_->StartCall(kExchangeMethod,
                        Message{request.SerializeAsString(), tensors},
                        {.timeout = timeout}, std::move(done));
  }

 private:
  Channel* const channel_;
};

}  // namespace

std::unique_ptr<Lane> MakeChannelLane(Channel* channel) {
  return std::make_unique<ChannelLane>(channel);
}

}  // namespace muster
