#ifndef PS_CLIENT_OPTIMIZER_REQUESTS_H_
#define PS_CLIENT_OPTIMIZER_REQUESTS_H_

#include <string>
#include <vector>

namespace muster {

namespace proto {
class SetOptimizerRequest;
}  // namespace proto

// The optimizers of a job as the requests that set them, in order, without what
// later requests replace. Carried out one after another, they set the same
// optimizers again.
//
// A value. Not thread-safe.
class OptimizerRequests {
 public:
  OptimizerRequests();
  ~OptimizerRequests();
  OptimizerRequests(const OptimizerRequests&);
  OptimizerRequests(OptimizerRequests&&) noexcept;
  OptimizerRequests& operator=(const OptimizerRequests&);
  OptimizerRequests& operator=(OptimizerRequests&&) noexcept;

  void Add(const proto::SetOptimizerRequest& request);
  // Drops the optimizer of a variable, which uses the default again.
  void Reset(const std::string& variable);
  bool Contains(const proto::SetOptimizerRequest& request) const;

  const std::vector<proto::SetOptimizerRequest>& list() const {
    return requests_;
  }

 private:
  std::vector<proto::SetOptimizerRequest> requests_;
};

}  // namespace muster

#endif  // PS_CLIENT_OPTIMIZER_REQUESTS_H_
