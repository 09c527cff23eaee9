#include "deploy/launch/kubernetes_manifests.h"

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/core/base/testing/status_matchers.h"
#include "deploy/launch/kubernetes_pod.h"
#include "deploy/launch/manifest_options.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

// Tests the text of the manifests. manifests_test.py checks them against
// Kubernetes' schemas.
class KubernetesManifestsTest : public testing::Test {
 protected:
  KubernetesManifestsTest() {
    job_.name = "digits";
    job_.tls = true;
    job_.plan.job_file = "examples/digits/digits.job";
    job_.plan.ps_count = 1;
    options_.image = "registry.example.org/muster:1";
    options_.job_text = "model {\n\n  seed: 1\n}\n";
  }

  std::string Manifests() {
    const absl::StatusOr<std::string> text =
        KubernetesManifests(job_, options_);
    EXPECT_OK(text);
    return text.value_or("");
  }
  // Returns the Job of a role.
  std::string JobOf(const std::string& role) {
    for (absl::string_view manifest : absl::StrSplit(Manifests(), "---\n")) {
      if (manifest.find("kind: Job\nmetadata:\n  name: digits-" + role) !=
          absl::string_view::npos) {
        return std::string(manifest);
      }
    }
    return "";
  }

  EngineJob job_;
  ManifestOptions options_;
};

TEST_F(KubernetesManifestsTest, EveryRoleIsAnIndexedJob) {
  const std::vector<std::string> manifests =
      absl::StrSplit(Manifests(), "---\n");
  EXPECT_THAT(manifests, SizeIs(8));
  EXPECT_THAT(JobOf("worker"), HasSubstr("completions: 2\n"));
  EXPECT_THAT(JobOf("ps"), HasSubstr("completions: 1\n"));
  EXPECT_THAT(JobOf("chief"), HasSubstr("completionMode: Indexed\n"));
  EXPECT_EQ(JobOf("evaluator"), "");
}

TEST_F(KubernetesManifestsTest, NothingIsLeftToFillIn) {
  for (const char* name :
       {"$NAME",    "$ROLE",       "$PORT",     "$IMAGE",       "$COUNT",
        "$CPUS",    "$FILE",       "$GPUS",     "$STATUS_PORT", "$SERVICE",
        "$QUEUE",   "$TTL",        "$GRACE",    "$LAST",        "$STEP",
        "$GROUP",   "$SCHEDULING", "$RESTARTS", "$PODS",        "$PRIORITY",
        "$SCRAPING"}) {
    for (const Workload workload :
         {Workload::kJob, Workload::kJobSet, Workload::kTrainJob}) {
      for (const GangScheduler gang :
           {GangScheduler::kNone, GangScheduler::kCoscheduling,
            GangScheduler::kVolcano}) {
        options_.workload = workload;
        options_.gang = gang;
        EXPECT_THAT(Manifests(), Not(HasSubstr(name)));
      }
    }
  }
}

TEST_F(KubernetesManifestsTest, WhatTheUserWroteIsNotFilledIn) {
  job_.plan.settings = {{"text", "$NAME $ROLE $QUEUE"}};
  for (const Workload workload :
       {Workload::kJob, Workload::kJobSet, Workload::kTrainJob}) {
    options_.workload = workload;
    EXPECT_THAT(Manifests(), HasSubstr("- \"text=$NAME $ROLE $QUEUE\"\n"));
  }
}

TEST_F(KubernetesManifestsTest, TheRunFolderIsTheOneGiven) {
  EXPECT_THAT(JobOf("ps"),
              AllOf(HasSubstr("{name: run, mountPath: \"/run/muster\"}"),
                    HasSubstr("MUSTER_RUN_DIR, value: \"/run/muster\"")));
  options_.data_claim = "images";
  job_.plan.run_dir = "runs/7";
  EXPECT_THAT(
      JobOf("ps"),
      AllOf(HasSubstr("{name: run, mountPath: \"/run/muster\"}"),
            HasSubstr("MUSTER_RUN_DIR, value: \"/run/muster/runs/7\""),
            HasSubstr("DATA_ROOT, value: \"/data,/run/muster/runs/7\"")));
  job_.plan.run_dir = "/results/a/";
  EXPECT_THAT(JobOf("ps"),
              AllOf(HasSubstr("{name: run, mountPath: \"/results/a\"}"),
                    HasSubstr("MUSTER_RUN_DIR, value: \"/results/a\"")));
  for (const char* path : {"/", "/tmp", "/etc/muster", "/data", "/data/a",
                           "../a", "/run", "s3://", "s3://b/../c"}) {
    job_.plan.run_dir = path;
    EXPECT_THAT(KubernetesManifests(job_, options_),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << path;
  }
}

TEST_F(KubernetesManifestsTest, AnObjectStoreNeedsKeysAndNoVolume) {
  EXPECT_THAT(Manifests(), Not(HasSubstr("digits-storage")));
  job_.plan.run_dir = "s3://results/digits";
  EXPECT_THAT(JobOf("worker"),
              AllOf(HasSubstr("MUSTER_RUN_DIR, value: \"s3://results/digits\""),
                    HasSubstr("- secretRef: {name: digits-storage}\n"),
                    Not(HasSubstr("digits-run"))));
  EXPECT_THAT(Manifests(),
              AllOf(HasSubstr("kubectl create secret generic digits-storage"),
                    Not(HasSubstr("PersistentVolumeClaim"))));
  // If only the data is in an object store, the run folder is still a volume.
  job_.plan.run_dir.clear();
  job_.plan.settings = {{"data_dir", "gs://images"}};
  EXPECT_THAT(Manifests(), AllOf(HasSubstr("secretRef: {name: digits-storage}"),
                                 HasSubstr("PersistentVolumeClaim")));
}

TEST_F(KubernetesManifestsTest, ThreadsAreThoseOfTheLimitUnlessGiven) {
  EXPECT_THAT(
      JobOf("worker"),
      AllOf(HasSubstr("        - name: MUSTER_THREADS\n"
                      "          valueFrom:\n"
                      "            resourceFieldRef: {containerName: muster, "
                      "resource: limits.cpu}\n"),
            HasSubstr("limits: {cpu: \"1\", memory: \"2Gi\"}")));
  job_.plan.environment = {{"MUSTER_THREADS", "3"}};
  EXPECT_THAT(JobOf("worker"),
              AllOf(HasSubstr("{name: MUSTER_THREADS, value: \"3\"}"),
                    Not(HasSubstr("resourceFieldRef"))));
}

TEST_F(KubernetesManifestsTest, ATaskHasTimeToEndAndAPodMore) {
  EXPECT_THAT(JobOf("ps"), HasSubstr("terminationGracePeriodSeconds: 60\n"));
  options_.grace_seconds = 300;
  EXPECT_THAT(JobOf("ps"),
              AllOf(HasSubstr("terminationGracePeriodSeconds: 310\n"),
                    HasSubstr("MUSTER_GRACE_PERIOD, value: \"300s\"")));
}

TEST_F(KubernetesManifestsTest, ARelativeTraceLiesInTheRunFolder) {
  job_.plan.environment = {{"MUSTER_TRACE", "trace.json"}};
  EXPECT_THAT(JobOf("chief"),
              HasSubstr("MUSTER_TRACE, value: \"/run/muster/trace.json\""));
  job_.plan.environment = {{"MUSTER_TRACE", "/tmp/trace.json"}};
  EXPECT_THAT(JobOf("chief"), HasSubstr("value: \"/tmp/trace.json\""));
}

TEST_F(KubernetesManifestsTest, TheJobFileIsABlock) {
  EXPECT_THAT(Manifests(),
              HasSubstr("  \"digits.job\": |2\n    model {\n\n      seed: 1\n"
                        "    }\n---\n"));
  EXPECT_THAT(JobOf("chief"),
              AllOf(HasSubstr("- \"--job=/etc/muster/job/digits.job\"\n"),
                    HasSubstr("configMap: {name: digits-job}")));
}

TEST_F(KubernetesManifestsTest, RolesGetTheCertificatesOfTheirTasksOnly) {
  EXPECT_THAT(JobOf("worker"),
              AllOf(HasSubstr("{key: worker-1.key, path: worker-1.key}"),
                    HasSubstr("{key: ca.pem, path: ca.pem}"),
                    Not(HasSubstr("worker-2")), Not(HasSubstr("ps-0")),
                    Not(HasSubstr("ca.key")), Not(HasSubstr("INSECURE"))));
  job_.tls = false;
  EXPECT_THAT(JobOf("worker"),
              AllOf(HasSubstr("{name: MUSTER_INSECURE, value: \"true\"}"),
                    Not(HasSubstr("tls"))));
}

TEST_F(KubernetesManifestsTest, AProgramChoosesItsRoleItself) {
  job_.plan.program = {"/usr/bin/train", "--set", "text=a \"b\"\n"};
  job_.plan.job_file.clear();
  const std::string worker = JobOf("worker");
  EXPECT_THAT(worker,
              AllOf(HasSubstr("command: [\"/usr/bin/train\"]"),
                    HasSubstr("- \"text=a \\\"b\\\"\\n\"\n"),
                    Not(HasSubstr("--task")), Not(HasSubstr("configMap"))));
  EXPECT_THAT(Manifests(), Not(HasSubstr("ConfigMap")));
}

TEST_F(KubernetesManifestsTest, DataIsMountedReadOnlyAndReadable) {
  options_.data_claim = "images";
  EXPECT_THAT(
      JobOf("worker"),
      AllOf(HasSubstr("{name: data, mountPath: /data, readOnly: true}"),
            HasSubstr("{claimName: \"images\", readOnly: true}"),
            HasSubstr("MUSTER_DATA_ROOT, value: \"/data,/run/muster\"")));
}

TEST_F(KubernetesManifestsTest, WorkersGetTheGpus) {
  EXPECT_THAT(Manifests(), Not(HasSubstr("nvidia")));
  options_.worker_gpus = 2;
  EXPECT_THAT(JobOf("worker"),
              HasSubstr("limits: {cpu: \"1\", memory: \"2Gi\", "
                        "nvidia.com/gpu: 2}\n"));
  EXPECT_THAT(JobOf("ps"), Not(HasSubstr("nvidia")));
  EXPECT_THAT(JobOf("chief"), Not(HasSubstr("nvidia")));
}

TEST_F(KubernetesManifestsTest, NamesAreChecked) {
  const auto refused = [this](std::string ManifestOptions::*option,
                              const std::string& value,
                              const std::string& flag) {
    ManifestOptions options = options_;
    options.*option = value;
    EXPECT_THAT(KubernetesManifests(job_, options),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(flag)));
  };
  refused(&ManifestOptions::queue, "a queue", "--queue=a queue");
  refused(&ManifestOptions::priority_class, "High", "--priority_class=High");
  refused(&ManifestOptions::topology_key, "zone}", "--topology_spread=zone}");
  refused(&ManifestOptions::service, std::string(64, 'a'),
          "--kubernetes_service=a");
  refused(&ManifestOptions::cpus, "m", "--task_cpus=m");
  options_.ttl_seconds = -1;
  EXPECT_THAT(KubernetesManifests(job_, options_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--ttl=-1s: expected 0s or more")));
  options_.ttl_seconds.reset();
  options_.status_port = 0;
  EXPECT_THAT(KubernetesManifests(job_, options_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--status_port=0: expected 1 to 65535")));
  EXPECT_THAT(ParseWorkload("pod"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--workload=pod: expected \"job\"")));
  EXPECT_THAT(ParseGangScheduler("kueue"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--gang=kueue: expected")));
}

TEST_F(KubernetesManifestsTest, BadOptionsAreRefused) {
  options_.memory = "2 GB\n";
  EXPECT_THAT(KubernetesManifests(job_, options_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--task_memory=2 GB")));
  options_.image.clear();
  EXPECT_THAT(KubernetesManifests(job_, options_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--image is missing")));
}

TEST(YamlStringTest, EscapesWhatQuotesEnd) {
  EXPECT_EQ(YamlString("a\"b\\c\n\td"), "\"a\\\"b\\\\c\\n\\x09d\"");
}

}  // namespace
}  // namespace muster
