#include "deploy/launch/slurm_script.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace muster {
namespace {

// In which tasks that are told to stop save what they have.
constexpr int kGraceSeconds = 60;

constexpr absl::string_view kDirectives = R"(#!/bin/bash
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

)";

// srun does not take --cpus-per-task from sbatch by itself. A step that is left
// by one task continues: the others end by themselves, as soon as they have
// saved what they have.
constexpr absl::string_view kLoop =
    R"(export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}

for ((attempt = 0; attempt <= $RESTARTS; ++attempt)); do
  status=0
  srun --label --kill-on-bad-exit=0 --wait=0 \
    $COMMAND || status=$?
  case $status in 137 | 138) ;; *) exit "$status" ;; esac
  # The others may have finished the job without the task that was lost.
  if [[ -e $MUSTER_RUN_DIR/summary.json ]]; then exit 0; fi
  echo "attempt $attempt: srun ended with $status, a task was lost" >&2
done
exit "$status"
)";

std::string GpuDirective(int count) {
  return count == 0 ? ""
                    : absl::StrCat("#SBATCH --gpus-per-task=", count, "\n");
}

// The assignments that all tasks get.
std::string Exports(const EngineJob& job) {
  std::string text;
  const auto add = [&text](absl::string_view name, absl::string_view word) {
    absl::StrAppend(&text, "export ", name, "=", word, "\n");
  };
  add("MUSTER_CLUSTER_RESOLVER", "slurm");
  add("MUSTER_CLUSTER_TASKS", ClusterTasksOf(job.plan));
  add("MUSTER_PORT_BASE", absl::StrCat(job.port_base));
  add("MUSTER_RUN_DIR", job.plan.run_dir.empty()
                            ? "\"$SLURM_SUBMIT_DIR\"/runs/\"$SLURM_JOB_ID\""
                            : ShellWord(job.plan.run_dir));
  // A server that is lost comes back with the whole step.
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

std::string Certificates(const EngineJob& job, const std::string& musterctl) {
  if (!job.tls) return "";
  return absl::StrCat(
      ShellWord(musterctl),
      " gen-certs --job_id=\"slurm-$SLURM_JOB_ID\" \\\n"
      "  --chiefs=",
      job.plan.with_chief ? 1 : 0, " --workers=", job.plan.worker_count,
      " --ps=", job.plan.ps_count, " --out=\"$MUSTER_TLS_DIR\"\n");
}

std::string Command(const EngineJob& job, const std::string& launch) {
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
      Exports(job), "mkdir -p \"$MUSTER_RUN_DIR\"\n",
      Certificates(job, options.musterctl),
      absl::StrReplaceAll(
          kLoop, {{"$RESTARTS", absl::StrCat(options.restart_count_max)},
                  {"$COMMAND", Command(job, options.launch)}}));
}

}  // namespace muster
