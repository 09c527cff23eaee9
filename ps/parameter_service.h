#ifndef PS_PARAMETER_SERVICE_H_
#define PS_PARAMETER_SERVICE_H_

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/base/thread_pool.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/coordinator_wait.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/message.h"
#include "common/net/rpc/service.h"
#include "proto/parameter_server.pb.h"
#include "ps/checkpoint_handler.h"
#include "ps/parameter_shard.h"
#include "ps/segment_intake.h"

namespace muster {

// What a parameter server answers: proto/parameter_server.proto over a
// ParameterShard. Nothing that comes in can bring it down.
//
// The first Create or SetOptimizer makes the server work for the job it comes
// from, and for no other until Reset().
//
// Thread-safe.
class ParameterService {
 public:
  // A coordinator whose cluster disagrees with `cluster` is refused; an empty
  // one agrees with all.
  ParameterService(TaskIdentity self, const ParameterShard::Options& options,
                   ClusterSpec cluster = {},
                   const SegmentIntake::Options& segments = {},
                   const CheckpointHandler::Options& checkpoints = {});
  ~ParameterService();

  const Service& service() const { return service_; }
  const AdmissionCheck& admission_check() const { return admission_check_; }
  ParameterShard& shard() { return shard_; }
  SegmentIntake& segments() { return segments_; }

  // Why a server stops serving.
  enum class End {
    kJobEnd,           // A coordinator has ended its job.
    kDisagreement,     // A coordinator came whose cluster is another.
    kStopped,          // Stop() or BeginEnd() was called in this process.
    kCoordinatorLost,  // Its coordinator broke off and did not come back.
    kNoCoordinator,    // None came in time, or none after one was lost.
  };
  struct Outcome {
    End end = End::kStopped;
    int exit_code = 0;   // Of kJobEnd: what the coordinator says.
    std::string reason;  // Of kJobEnd, unless the job is done.
    absl::Status why;    // Of kNoCoordinator and kDisagreement.
  };

  // Serves until there is reason to stop. Logs whom it waits for until there is
  // a coordinator, within the limits of `coordinator`. One that is lost may
  // come back, or another in its place, within `coordinator_grace`.
  Outcome AwaitEnd(const CoordinatorWait::Options& coordinator,
                   absl::Duration coordinator_grace)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // As Stop(), once the coordinator has saved what this server holds, and lets
  // it go; at once where there is none.
  void BeginEnd() ABSL_LOCKS_EXCLUDED(mutex_);

  // Forgets the job and everything it left.
  void Reset() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Watcher;

  void HandleDescribe(ReceivedMessage message, Responder responder);
  void HandleCreate(ReceivedMessage message, Responder responder);
  void HandleExchange(ReceivedMessage message, Responder responder);
  void HandleSetOptimizer(ReceivedMessage message, Responder responder);
  void HandleEndTask(ReceivedMessage message, Responder responder);
  absl::StatusOr<Message> Create(const ReceivedMessage& message);
  absl::StatusOr<Message> SetOptimizer(const ReceivedMessage& message);
  absl::StatusOr<Message> Exchange(const ReceivedMessage& message);
  absl::Status CheckCluster(const proto::WatchRequest& request) const;
  // Ends a server without a job that a coordinator with another TF_CONFIG has
  // dialled.
  void NoteDisagreement(const absl::Status& disagreement)
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool is_ending() ABSL_LOCKS_EXCLUDED(mutex_);
  void LetGo() ABSL_LOCKS_EXCLUDED(mutex_);
  void CoordinatorCame() ABSL_LOCKS_EXCLUDED(mutex_);
  void CoordinatorWent() ABSL_LOCKS_EXCLUDED(mutex_);

  const ClusterSpec cluster_;
  AdmissionCheck admission_check_;
  ParameterShard shard_;
  SegmentIntake segments_;
  Service service_;

  absl::Mutex mutex_;
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;  // BeginEnd() was called.
  bool is_ended_ ABSL_GUARDED_BY(mutex_) = false;
  Outcome outcome_ ABSL_GUARDED_BY(mutex_);
  int coordinator_count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool had_coordinator_ ABSL_GUARDED_BY(mutex_) = false;
  int lost_count_ ABSL_GUARDED_BY(mutex_) = 0;

  // Drawing first values takes long; exchanges go on meanwhile. Last, so that
  // it stops first.
  ThreadPool create_pool_;
  CheckpointHandler checkpoints_;
};

}  // namespace muster

#endif  // PS_PARAMETER_SERVICE_H_
