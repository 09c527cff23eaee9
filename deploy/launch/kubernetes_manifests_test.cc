#include "deploy/launch/kubernetes_manifests.h"

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/core/base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

// What the manifests mean to Kubernetes is tested by manifests_test.py.
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
  // The Job of a role.
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
  for (const char* name : {"$NAME", "$ROLE", "$PORT", "$IMAGE", "$COUNT",
                           "$CPUS", "$FILE", "$GPUS", "$STATUS_PORT"}) {
    EXPECT_THAT(Manifests(), Not(HasSubstr(name)));
  }
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
              HasSubstr("limits: {memory: \"2Gi\", nvidia.com/gpu: 2}\n"));
  EXPECT_THAT(JobOf("ps"), Not(HasSubstr("nvidia")));
  EXPECT_THAT(JobOf("chief"), Not(HasSubstr("nvidia")));
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
