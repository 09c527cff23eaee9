#ifndef DEPLOY_LAUNCH_SLURM_SCRIPT_H_
#define DEPLOY_LAUNCH_SLURM_SCRIPT_H_

#include <string>

#include "deploy/launch/engine_job.h"

namespace muster {

struct SlurmScriptOptions {
  // Paths on the nodes; absolute.
  std::string launch;
  std::string musterctl;
  // How often srun is started again after a lost task.
  int restart_count_max = 10;
  // Of each task, whatever its role: all tasks of a step get the same.
  int task_gpus = 0;
};

// Returns a batch script for sbatch(1) that runs `job` in one step: one process
// for each task, whose role is its rank's.
//
// A step that ends with 137 (a task was killed) or 138 (a task asks to be
// started again) is repeated, unless the job had written its summary. With TLS
// the script makes certificates for each run in its run folder, which the nodes
// must share. The script's status is the step's.
std::string SlurmScript(const EngineJob& job,
                        const SlurmScriptOptions& options);

// Returns `text` as one word of a shell: as it is, or in single quotes.
std::string ShellWord(absl::string_view text);

}  // namespace muster

#endif  // DEPLOY_LAUNCH_SLURM_SCRIPT_H_
