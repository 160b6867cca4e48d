#include "checkpoint/manifest.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::checkpoint {
namespace {

using ::testing::HasSubstr;

Manifest Some() {
  return {.step = 500,
          .model_name = "cnn",
          .written = absl::FromUnixMillis(1'700'000'000'123),
          .final = true,
          .files = {{.name = "state.json", .bytes = 3, .sha256 = std::string(64, 'a')}}};
}

TEST(ManifestTest, RoundTrips) {
  const auto again = ParseManifest(ToJson(Some()));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->step, 500);
  EXPECT_EQ(again->model_name, "cnn");
  EXPECT_EQ(again->written, Some().written);
  EXPECT_TRUE(again->final);
  ASSERT_EQ(again->files.size(), 1u);
  EXPECT_EQ(again->files[0].name, "state.json");
  EXPECT_EQ(again->bytes(), 3);
}

TEST(ManifestTest, RejectsMalformedManifests) {
  const std::string good = ToJson(Some());
  const std::string digest(64, 'a');
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"muster-checkpoint", "other"},
           {"\"step\": 500", "\"step\": -1"},
           {"\"step\": 500", "\"step\": 18446744073709551615"},
           {"\"step\": 500", "\"stop\": 500"},
           {"\"cnn\"", "1"},
           {"\"written\": \"", "\"written\": \"x"},
           {"\"final\": true", "\"final\": 1"},
           {"state.json", "../state.json"},
           {"state.json", "/etc/passwd"},
           {"state.json", ""},
           {"\"bytes\": 3", "\"bytes\": -3"},
           {"\"bytes\": 3", "\"bytes\": 3.5"},
           {digest, "abc"},
           {digest, std::string(64, 'g')},
           {"[", "[1,"},
           {"\"files\": [", "\"files\": [[],"},
           {"{", "["},
           {"cnn", "\xff"},
           {"\"cnn\"", std::string(100'000, '[')}}) {
    const auto parsed = ParseManifest(absl::StrReplaceAll(good, {{from, to}}));
    EXPECT_TRUE(absl::IsDataLoss(parsed.status())) << from << " -> " << to << parsed.status();
  }
  EXPECT_TRUE(absl::IsDataLoss(ParseManifest("").status()));
}

TEST(ManifestTest, RejectsDuplicateFilesAndOverflowingSizes) {
  Manifest manifest = Some();
  manifest.files.push_back(manifest.files[0]);
  EXPECT_THAT(std::string(ParseManifest(ToJson(manifest)).status().message()),
              HasSubstr("listed twice"));
  manifest.files[1].name = "other";
  manifest.files[0].bytes = manifest.files[1].bytes = INT64_MAX;
  EXPECT_TRUE(absl::IsDataLoss(ParseManifest(ToJson(manifest)).status()));
}

TEST(ManifestTest, ANewerFormatIsNotCalledDamaged) {
  const auto parsed =
      ParseManifest(absl::StrReplaceAll(ToJson(Some()), {{"\"version\": 1", "\"version\": 2"}}));
  EXPECT_TRUE(absl::IsFailedPrecondition(parsed.status()));
  EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("newer muster"));
}

}  // namespace
}  // namespace muster::checkpoint
