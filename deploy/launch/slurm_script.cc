#include "deploy/launch/slurm_script.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace muster {
namespace {

// Time for tasks to save their state after SIGTERM.
constexpr int kGraceSeconds = 60;

constexpr absl::string_view kDirectives = R"sh(#!/bin/bash
# Trains $NAME with Muster: sbatch this file. Options of sbatch, such as
# --partition, --nodes, --cpus-per-task and --time, go before it on the command
# line or into further #SBATCH lines.
#SBATCH --job-name=$NAME
#SBATCH --ntasks=$TASKS
#SBATCH --distribution=block
#SBATCH --output=$NAME-%j.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=TERM@$GRACE
$GPUSset -euo pipefail

if [[ -n ${SLURM_ARRAY_TASK_ID-} ]]; then
  echo "sbatch --array: every element would train the same job, since nothing in" \
    "this script depends on its index. Submit one job for each training" >&2
  exit 2
fi

)sh";

// Reads the listening sockets from /proc on each node instead of connecting,
// since tasks of other jobs would log a connection. Jobs with consecutive ids
// begin their search at different ranges, so that two jobs that start at the
// same time do not choose the same range.
constexpr absl::string_view kPorts =
    R"sh(# A range of ports for the tasks that is free on all nodes: two jobs may share one.
choose_ports() {
  local width=128 first=20000 count=99 i port taken
  taken=$(srun --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" \
    --ntasks-per-node=1 sh -c 'cat /proc/net/tcp*' |
    while read -r _ address _ state _; do
      if [[ $state == 0A ]]; then echo "$((16#${address##*:}))"; fi
    done)
  for ((i = 0; i < count; ++i)); do
    MUSTER_PORT_BASE=$((first + (SLURM_JOB_ID * 31 + i) % count * width))
    for port in $taken; do
      if ((port >= MUSTER_PORT_BASE && port < MUSTER_PORT_BASE + width)); then
        continue 2
      fi
    done
    export MUSTER_PORT_BASE
    return
  done
  echo "no $width ports from $first on are free on all nodes" >&2
  exit 1
}

)sh";

// srun does not inherit --cpus-per-task from sbatch. A step continues after one
// task has ended: the other tasks end by themselves, once they have saved their
// state. srun runs in the background while the shell waits for it, because the
// shell handles signals only during `wait`.
constexpr absl::string_view kLoop =
    R"sh(export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}

# SIGUSR1 (scancel --batch --signal=USR1 JOBID) and preemption have the tasks save,
# and Slurm start this job again.
requeue=
trap 'requeue=1; scancel --signal=TERM "$SLURM_JOB_ID" || true' USR1
is_preempted() {
  [[ $(scontrol show job "$SLURM_JOB_ID") =~ PreemptTime=[0-9] ]]
}

for ((attempt = 0; attempt <= $RESTARTS; ++attempt)); do
$CHOOSE  srun --label --kill-on-bad-exit=0 --wait=0 \
    $COMMAND &
  step=$!
  # A signal to this shell ends only the wait.
  while kill -0 "$step" 2>/dev/null; do wait "$step" || true; done
  status=0
  wait "$step" || status=$?
  # The others may have finished the job without the task that was lost.
  if [[ -e $MUSTER_RUN_DIR/summary.json && ! $MUSTER_RUN_DIR/summary.json -ot $started ]]; then
    case $status in 137 | 138) exit 0 ;; esac
  fi
  case $status in
    137 | 138 | 143) if [[ $requeue ]] || is_preempted; then
      echo "srun ended with $status: the job is queued again" >&2
      scontrol requeue "$SLURM_JOB_ID"
      exit "$status"
    fi ;;
  esac
  case $status in 137 | 138) ;; *) exit "$status" ;; esac
  echo "attempt $attempt: srun ended with $status, a task was lost" >&2
done
exit "$status"
)sh";

std::string GpuDirective(int count) {
  return count == 0 ? ""
                    : absl::StrCat("#SBATCH --gpus-per-task=", count, "\n");
}

// Returns the assignments of the variables for all tasks.
std::string Exports(const EngineJob& job) {
  std::string text;
  const auto add = [&text](absl::string_view name, absl::string_view word) {
    absl::StrAppend(&text, "export ", name, "=", word, "\n");
  };
  add("MUSTER_CLUSTER_RESOLVER", "slurm");
  add("MUSTER_CLUSTER_TASKS", ClusterTasksOf(job.plan));
  if (job.port_base.has_value()) {
    add("MUSTER_PORT_BASE", absl::StrCat(*job.port_base));
  }
  add("MUSTER_RUN_DIR", job.plan.run_dir.empty()
                            ? "\"$SLURM_SUBMIT_DIR\"/runs/\"$SLURM_JOB_ID\""
                            : ShellWord(job.plan.run_dir));
  // A lost parameter server is restarted only with the whole step, so that
  // there is no reason to wait for it.
  if (!job.plan.environment.contains("MUSTER_SERVER_RETURN_TIMEOUT")) {
    add("MUSTER_SERVER_RETURN_TIMEOUT", "0");
  }
  for (const auto& [name, value] : job.plan.environment) {
    add(name, ShellWord(value));
  }
  if (job.tls) {
    add("MUSTER_TLS_DIR", "\"$MUSTER_RUN_DIR\"/tls");
  } else {
    add("MUSTER_INSECURE", "true");
  }
  return text;
}

std::string CertificatesCommand(const EngineJob& job,
                                const std::string& musterctl) {
  if (!job.tls) return "";
  return absl::StrCat(
      ShellWord(musterctl),
      " gen-certs --job_id=\"slurm-$SLURM_JOB_ID\" \\\n"
      "  --chiefs=",
      job.plan.with_chief ? 1 : 0, " --workers=", job.plan.worker_count,
      " --ps=", job.plan.ps_count, " --out=\"$MUSTER_TLS_DIR\"\n");
}

std::string TaskCommand(const EngineJob& job, const std::string& launch) {
  std::string command =
      ShellWord(job.plan.program.empty() ? launch : job.plan.program.front());
  for (const std::string& argument :
       EngineTaskArguments(job.plan, job.plan.job_file)) {
    absl::StrAppend(&command, " ", ShellWord(argument));
  }
  return command;
}

}  // namespace

std::string ShellWord(absl::string_view text) {
  const bool is_plain =
      !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
               absl::string_view("_-+=./:,@%").find(c) !=
                   absl::string_view::npos;
      });
  if (is_plain) return std::string(text);
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string SlurmScript(const EngineJob& job,
                        const SlurmScriptOptions& options) {
  return absl::StrCat(
      absl::StrReplaceAll(kDirectives,
                          {{"$NAME", job.name},
                           {"$TASKS", absl::StrCat(TasksOf(job.plan).size())},
                           {"$GRACE", absl::StrCat(kGraceSeconds)},
                           {"$GPUS", GpuDirective(options.task_gpus)}}),
      Exports(job),
      "mkdir -p \"$MUSTER_RUN_DIR\"\n"
      "# An older summary belongs to an earlier job.\n"
      "started=$MUSTER_RUN_DIR/.started-$SLURM_JOB_ID\n"
      "touch \"$started\"\n",
      CertificatesCommand(job, options.musterctl),
      job.port_base.has_value() ? "" : kPorts,
      absl::StrReplaceAll(
          kLoop,
          {{"$RESTARTS", absl::StrCat(options.restart_count_max)},
           {"$CHOOSE", job.port_base.has_value() ? "" : "  choose_ports\n"},
           {"$COMMAND", TaskCommand(job, options.launch)}}));
}

}  // namespace muster
