#include "worker/testing/test_worker.h"

#include <cstdint>
#include <utility>

#include "common/core/base/check.h"
#include "common/core/base/random.h"
#include "common/core/system/clock.h"
#include "common/net/cluster/task_id.h"

namespace muster {
namespace {

class NoVariables final : public SessionVariables {
 public:
  absl::StatusOr<VariableStore*> Store() override {
    return absl::FailedPreconditionError("this worker has no variables");
  }
  void NoteScheduled(uint64_t) override {}
  void SetLowWaterMark(uint64_t) override {}
};

}  // namespace

TestWorker::TestWorker(const Options& options) : options_(options) { Start(); }

TestWorker::~TestWorker() { Kill(); }

void TestWorker::Start() {
  MUSTER_CHECK(server_ == nullptr);
  const TaskIdentity self = {.task_type = "worker",
                             .task_index = options_.index,
                             .incarnation = RandomIdentity()};
  admission_check_ = std::make_unique<AdmissionCheck>(self);
  WorkerService::VariablesFactory variables = options_.variables;
  if (variables == nullptr) {
    variables = [](const TaskIdentity&, const SessionJob&) {
      return std::make_unique<NoVariables>();
    };
  }
  worker_ = std::make_unique<WorkerService>(
      WorkerService::Options{.self = self,
                             .admission_check = admission_check_.get(),
                             .cluster = options_.cluster,
                             .coordinator_grace = options_.coordinator_grace,
                             .session = options_.session},
      options_.ops, options_.kernels, std::move(variables), Clock::Real());
  methods_ = std::make_unique<Service>();
  worker_->AddTo(methods_.get());
  const auto address = options_.cluster.Address(
      TaskId{.type = TaskType::kWorker, .index = options_.index});
  MUSTER_CHECK(address.ok());
  auto server = Network::Grpc()->Listen({.address = *address}, methods_.get(),
                                        admission_check_.get());
  MUSTER_CHECK(server.ok());
  server_ = *std::move(server);
}

void TestWorker::Kill() {
  if (server_ == nullptr) return;
  server_->Shutdown(absl::ZeroDuration());
  server_ = nullptr;
  worker_ = nullptr;
  methods_ = nullptr;
  admission_check_ = nullptr;
}

}  // namespace muster
