#ifndef COMMON_NET_PROCESS_TASK_FLAG_TABLE_H_
#define COMMON_NET_PROCESS_TASK_FLAG_TABLE_H_

// The flags of tasks, in the order of --help:
//
//   FLAG(type, name, default, topic, roles that use it, passing, help)
//
// `topic` is one of kTraining, kCluster, kSecurity, kWaiting, kRecovery,
// kObservation and kTransport. Roles are kCoordinator, kWorker and kServer, or
// several of them: kTrainer, kServing, kAll. `passing` says to which tasks
// `launch` passes the flag: kToAll, kToLeader (the task that leads the job) or
// kNot (launch sets the flag for each task itself, or only one task uses it).

// clang-format off
#define MUSTER_TASK_FLAGS(FLAG) \
  FLAG(std::string, job, "", kTraining, kTrainer, kNot, \
       "The job file: model, data, optimizer, epochs.") \
  FLAG(std::string, run_dir, "", kTraining, kAll, kNot, \
       "Where summary.json, logs and checkpoints go. By default a new " \
       "folder under runs/.") \
  FLAG(bool, temporary_run_dir, false, kTraining, kTrainer, kToLeader, \
       "The folder of the run is removed when it has ended, as muster.fit() " \
       "does: no line says where files are in it.") \
  FLAG(absl::optional<uint64_t>, seed, absl::nullopt, kTraining, kTrainer, kToAll, \
       "Makes initial weights, shuffles and dropout repeatable. By " \
       "default the job file's, or drawn at random and printed.") \
  FLAG(int, threads, 0, kTraining, kAll, kNot, \
       "Threads that compute in this process; 0 takes one for each core " \
       "that its control group and affinity allow.") \
  FLAG(int, gpu_simulated, 0, kTraining, kTrainer, kToAll, \
       "Computes on this many simulated GPUs, gpu:0 and on, in place of " \
       "those of the machine: to test programs without a GPU. Slow.") \
  FLAG(bool, tensor_float_32, false, kTraining, kTrainer, kToAll, \
       "Lets GPUs round float32 operands of products and convolutions to " \
       "TF32, 10 bits of mantissa, which tensor cores compute faster.") \
  FLAG(std::string, gpu_graphs, "auto", kTraining, kTrainer, kToAll, \
       "auto: steps that GPUs repeat become CUDA graphs where they can. " \
       "off: each kernel is launched by itself.") \
  FLAG(bool, check_numerics, false, kTraining, kTrainer, kToAll, \
       "Ends a step with the first value that is NaN or infinite, and " \
       "names the operation that made it. To find where a NaN comes " \
       "from; slow, and on CPUs only.") \
  FLAG(bool, check_config, false, kCluster, kAll, kNot, \
       "Prints the cluster that TF_CONFIG and the flags describe, checks " \
       "the whole job, its data and its folders without computing " \
       "anything, prints the memory that each task needs, and ends: with " \
       "status 0 if all is right, 2 if not.") \
  FLAG(bool, check_data, true, kCluster, kTrainer, kNot, \
       "With --check_config: opens the data and tries the folders of the " \
       "job. --nocheck_data is for machines that lack them.") \
  FLAG(std::string, tf_config, "", kCluster, kAll, kNot, \
       "Taken instead of the environment's TF_CONFIG.") \
  FLAG(std::string, job_name, "", kCluster, kAll, kNot, \
       "This task's role (chief, worker, ps, evaluator). With " \
       "--task_index and the lists of hosts it takes the place of " \
       "TF_CONFIG.") \
  FLAG(int, task_index, -1, kCluster, kAll, kNot, \
       "This task's number in its role, counted from 0.") \
  FLAG(std::string, chief_hosts, "", kCluster, kAll, kNot, \
       "The chief's host:port.") \
  FLAG(std::string, worker_hosts, "", kCluster, kAll, kNot, \
       "The workers' host:port,host:port,...") \
  FLAG(std::string, ps_hosts, "", kCluster, kAll, kNot, \
       "The parameter servers' host:port,host:port,...") \
  FLAG(std::string, cluster_resolver, "auto", kCluster, kAll, kNot, \
       "Where the cluster is read: \"tf_config\", \"slurm\" (the " \
       "variables of srun), \"kubernetes\" (the pod's host name), or " \
       "\"auto\": TF_CONFIG if it is set, then Slurm in a step of srun, " \
       "then Kubernetes in a pod with --cluster_tasks.") \
  FLAG(std::string, cluster_tasks, "", kCluster, kAll, kNot, \
       "How many tasks each role has, as in chief=1,ps=1,worker=2, for " \
       "Slurm and Kubernetes. Slurm's ranks take the roles in this " \
       "order; by default all are workers.") \
  FLAG(int, port_base, 0, kCluster, kAll, kNot, \
       "The port of a task that Slurm or Kubernetes places. With Slurm, " \
       "further tasks of the same host have the next ports. 0 stands " \
       "for 8888, and with Slurm for a port that depends on the job and " \
       "the step, or that srun --resv-ports reserves.") \
  FLAG(std::string, kubernetes_service, "", kCluster, kAll, kNot, \
       "The headless Service that gives the pods their names. By default " \
       "NAME, where the host name is NAME-ROLE-INDEX.") \
  FLAG(std::string, bind_address, "", kCluster, kAll, kNot, \
       "The host:port to listen on, where that is not this task's entry " \
       "in the cluster. By default every interface at that entry's port, " \
       "or only this machine's own where the entry says localhost.") \
  FLAG(std::string, tls_cert, "", kSecurity, kAll, kNot, \
       "This task's certificate in PEM, whose URI is " \
       "spiffe://muster/JOB/ROLE/INDEX. With --tls_key and --tls_ca, " \
       "tasks speak TLS 1.3 and accept only each other. Read again when " \
       "it changes.") \
  FLAG(std::string, tls_key, "", kSecurity, kAll, kNot, \
       "The private key of --tls_cert in PEM.") \
  FLAG(std::string, tls_ca, "", kSecurity, kAll, kNot, \
       "The certificate in PEM of the authority that signs those of the " \
       "job's tasks.") \
  FLAG(std::string, tls_dir, "", kSecurity, kAll, kNot, \
       "A folder with this task's ROLE-INDEX.pem and ROLE-INDEX.key and " \
       "with ca.pem, as `musterctl gen-certs` makes it. Stands for " \
       "--tls_cert, --tls_key and --tls_ca, and is the same for all " \
       "tasks.") \
  FLAG(bool, insecure, false, kSecurity, kAll, kNot, \
       "Lets tasks on several machines talk in plaintext and take work " \
       "from every process that reaches their ports.") \
  FLAG(std::string, data_root, "", kSecurity, kWorker, kToAll, \
       "Folders, separated by commas, below which a worker opens the " \
       "files that its coordinator's input pipelines name; \"/\" for " \
       "anywhere. Unless given: its --run_dir and what --set and its " \
       "arguments name; in a cluster of one machine, anywhere.") \
  FLAG(std::string, checkpoint_root, "", kSecurity, kServer, kToAll, \
       "Folders and URLs (s3://bucket/folder), separated by commas, in " \
       "which a parameter server writes and reads checkpoints when its " \
       "coordinator asks; \"/\" for all folders. Unless given: its " \
       "--run_dir, what --set and its arguments name, and in a cluster " \
       "of one machine its working directory.") \
  FLAG(absl::Duration, startup_timeout, absl::Minutes(10), kWaiting, kAll, kToAll, \
       "How long to wait for the other tasks at the start, and for a new " \
       "coordinator with --on_coordinator_loss=wait.") \
  FLAG(absl::Duration, grace_period, absl::Seconds(10), kWaiting, kAll, kToAll, \
       "How long an orderly end may take after SIGTERM.") \
  FLAG(std::string, on_coordinator_loss, "exit", kWaiting, kServing, kToAll, \
       "What a worker or parameter server does when its coordinator is " \
       "gone: \"exit\" with status 138, or \"wait\" for a new one.") \
  FLAG(absl::optional<absl::Duration>, coordinator_timeout, absl::nullopt, kWaiting, kServing, kToAll, \
       "A coordinator silent for this long is gone. By default 10s, or its " \
       "--coordinator_return_timeout if it can be started again.") \
  FLAG(absl::Duration, peer_timeout, absl::Seconds(3), kWaiting, kTrainer, kToAll, \
       "A worker that trains in sync with this one and is silent for " \
       "this long is gone. The network may drop all packets between two " \
       "workers for up to half as long.") \
  FLAG(absl::Duration, hang_report_interval, absl::Seconds(30), kWaiting, kTrainer, kToAll, \
       "How long workers that train in sync wait for one of them before " \
       "they print its name.") \
  FLAG(absl::Duration, evaluator_timeout, absl::Hours(7 * 24), kWaiting, kTrainer, kToAll, \
       "How long an evaluator waits for a checkpoint, or for the end of " \
       "training, before it gives up; \"inf\" forever.") \
  FLAG(absl::Duration, server_return_timeout, absl::Seconds(60), kRecovery, kCoordinator, kToAll, \
       "How long the coordinator waits for a parameter server that is " \
       "lost to be started again, before it gives the job up; 0 for not " \
       "at all.") \
  FLAG(int, min_workers, 0, kRecovery, kTrainer, kToAll, \
       "The smallest number of workers in sync that continue after others " \
       "are lost: no process restarts, and they divide the lost workers' " \
       "part of each batch. They need one --run_dir. 0: the loss of a " \
       "worker ends all.") \
  FLAG(int, max_recoveries, 100, kRecovery, kCoordinator, kToAll, \
       "How often training may be rolled back after the loss of a " \
       "parameter server before the job is given up.") \
  FLAG(absl::Duration, coordinator_return_timeout, absl::Minutes(2), kRecovery, kCoordinator, kToAll, \
       "How long parameter servers keep their variables, and workers wait, " \
       "for a coordinator that is lost to be started again with the same " \
       "--run_dir, from where it continues training. 0: it keeps no " \
       "journal there, and its loss ends the job.") \
  FLAG(bool, standby, false, kRecovery, kCoordinator, kNot, \
       "This coordinator waits while another one with the same --run_dir " \
       "leads the job, and continues its training when that one is lost: at " \
       "once on the same machine, after 30 s without a sign of it on " \
       "another one. Ends when the job ends.") \
  FLAG(std::string, server_log, "auto", kRecovery, kServer, kToAll, \
       "auto: a parameter server with a --run_dir on a local file system " \
       "logs all updates there, up to 64 MiB in a second. Killed and started " \
       "again on the same machine, it continues where it stood, and training " \
       "is not rolled back. on: it logs any number. off: none.") \
  FLAG(int64_t, server_log_bytes_max, int64_t{1} << 30, kRecovery, kServer, kToAll, \
       "When the updates in that log have this size, or that of the server's " \
       "variables and slots if they are larger, a copy of those replaces " \
       "them.") \
  FLAG(int, status_port, -1, kObservation, kAll, kToLeader, \
       "Serves the status page, /status.json, /metrics, /livez and " \
       "/readyz on this port; 0 selects a free one and prints it. By " \
       "default none are served.") \
  FLAG(std::string, status_host, "localhost", kObservation, kAll, kToLeader, \
       "The address of the status pages: \"localhost\", or an IP address " \
       "of this machine. Addresses that other machines reach require " \
       "--status_token_file.") \
  FLAG(std::string, status_token_file, "", kObservation, kAll, kToLeader, \
       "A file with the token that clients of the status pages must send " \
       "as \"Authorization: Bearer TOKEN\".") \
  FLAG(std::string, status_job, "", kObservation, kAll, kToLeader, \
       "The value of the label muster_job of all metrics. By default the " \
       "name of the job file, if there is one.") \
  FLAG(int, control_port, -1, kObservation, kAll, kToLeader, \
       "Lets `musterctl checkpoint`, `drain` and `stop` reach the task " \
       "that leads the job on this port; 0 selects a free one and prints " \
       "it. By default they cannot. With TLS they need a certificate of " \
       "the role \"operator\".") \
  FLAG(std::string, trace, "", kObservation, kTrainer, kToLeader, \
       "Records what all tasks do, and has the task that leads the job " \
       "write it to this file at the end, for chrome://tracing or " \
       "ui.perfetto.dev: steps, kernels, collectives and exchanges, on " \
       "one clock. Each thread keeps its newest 16,384 spans.") \
  FLAG(std::string, log_format, "text", kObservation, kAll, kToAll, \
       "\"text\", or \"json\" for one JSON object a line.") \
  FLAG(std::string, log_severity, "info", kObservation, kAll, kToAll, \
       "The least severe lines to log: \"info\", \"warning\" or " \
       "\"error\".") \
  FLAG(bool, log_file, true, kObservation, kAll, kNot, \
       "Writes the log also to logs/ROLE-INDEX.log in the run's folder: " \
       "--run_dir, or the one that a job without it gets.") \
  FLAG(uint32_t, log_megabytes, 256, kObservation, kAll, kToAll, \
       "A task's log file that grows beyond this is moved to NAME.log.1, " \
       "in place of an earlier one; 0 for no bound.") \
  FLAG(bool, shared_memory, true, kTransport, kAll, kToAll, \
       "Lets tasks of one machine hand each other tensors in shared " \
       "memory: workers that train in sync, and parameter servers with " \
       "their clients.") \
  FLAG(bool, raw_sockets, true, kTransport, kTrainer, kToAll, \
       "Lets workers that train in sync speak over sockets of their own, " \
       "beside gRPC. Turn both off, and everything goes over gRPC. With " \
       "a certificate, these sockets are encrypted, too.") \
  FLAG(bool, local_connections, true, kTransport, kAll, kToAll, \
       "Lets tasks of one machine and one user that have checked each " \
       "other's certificates talk over Unix sockets, which are not " \
       "encrypted. With --nolocal_connections gRPC is always encrypted.") \
  FLAG(int, lane_port, 0, kTransport, kTrainer, kNot, \
       "The port of those sockets, for firewalls; a worker with several " \
       "GPUs uses one port for each, from this one up. 0: free ports.")
// clang-format on

#endif  // COMMON_NET_PROCESS_TASK_FLAG_TABLE_H_
