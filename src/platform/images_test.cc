#include "platform/images.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::platform {
namespace {

using ::testing::HasSubstr;

TEST(ImagesTest, AReferenceHasTheVersionAsItsTag) {
  EXPECT_EQ(TrainerImage("registry.example.com:5000/ml", "1.0").Reference(),
            "registry.example.com:5000/ml/muster-trainer:1.0");
}

TEST(ImagesTest, RepositoriesAreChecked) {
  for (const char* good : {"registry.example.com/ml", "localhost:5000", "127.0.0.1:5000/a/b_c",
                           "us-central1-docker.pkg.dev/my-project/muster", "docker.io/user"}) {
    EXPECT_TRUE(CheckRepository(good).ok()) << good;
  }
  for (const char* bad :
       {"", "user", "reg/ml", "../ml", "-x", "https://registry.example.com/ml",
        "registry.example.com/ml:1", "registry.example.com/ML", "registry.example.com/", "/ml",
        "a b/c", "registry.example.com/ml/-x", "registry.example.com//ml"}) {
    const absl::Status status = CheckRepository(bad);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bad;
    EXPECT_THAT(status.message(), HasSubstr("such as registry.example.com/ml"));
  }
}

TEST(ImagesTest, AFieldOfAnyDepthMentionsAnImage) {
  const Image image = OperatorImage("r/x", "1");
  EXPECT_TRUE(Mentions({{"a", {1, nullptr, {{"image", "r/x/muster:1"}}}}}, image));
  EXPECT_FALSE(Mentions({{"a", {1, nullptr, {{"image", "r/x/muster:10"}}}}}, image));
  EXPECT_FALSE(Mentions({{"r/x/muster:1", 1}}, image));
}

TEST(ImagesTest, ErrorsOfAToolHaveARemedy) {
  const Image own = TrainerImage("registry.example.com/ml", "1");
  const Image google = TrainerImage("us-central1-docker.pkg.dev/my-project/muster", "1");
  EXPECT_THAT(RemedyFor(own, "buildah", "unauthorized: authentication required"),
              HasSubstr("log in with: buildah login registry.example.com"));
  EXPECT_THAT(RemedyFor(google, "skopeo", "denied: Permission denied"),
              HasSubstr("gcloud auth print-access-token | skopeo login -u oauth2accesstoken "
                        "--password-stdin us-central1-docker.pkg.dev"));
  EXPECT_THAT(RemedyFor(google, "skopeo", "name unknown: Repository \"muster\" not found"),
              HasSubstr("gcloud artifacts repositories create muster --repository-format=docker "
                        "--location=us-central1"));
  EXPECT_THAT(RemedyFor(own, "skopeo", "name unknown"), HasSubstr("create the repository"));
  EXPECT_THAT(RemedyFor(own, "skopeo", "dial tcp: lookup x: no such host"), HasSubstr("reachable"));
  EXPECT_THAT(RemedyFor(own, "skopeo", "x509: certificate signed by unknown authority"),
              HasSubstr("/etc/containers/certs.d/registry.example.com/ca.crt"));
  EXPECT_EQ(RemedyFor(own, "skopeo", "no space left on device"), "");
}

}  // namespace
}  // namespace muster::platform
