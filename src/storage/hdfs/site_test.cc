#include "storage/hdfs/site.h"

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/hdfs/client.h"
#include "storage/testing/environment.h"

namespace muster::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class SiteTest : public testing::Test {
 protected:
  // Each pair is a name and its value.
  void Write(const std::string& file, const std::map<std::string, std::string>& properties) {
    std::string xml = "<?xml version=\"1.0\"?>\n<!-- ours --><configuration>\n";
    for (const auto& [name, value] : properties) {
      absl::StrAppend(&xml, "  <property><name>", name, "</name><value> ", value,
                      "\n</value><final>true</final></property>\n");
    }
    ASSERT_TRUE(base::WriteFileAtomically(Path(file), absl::StrCat(xml, "</configuration>")).ok());
  }
  std::string Path(const std::string& file) { return base::JoinPath(folder_.path(), file); }

  const base::TempDir folder_;
};

TEST_F(SiteTest, TheDefaultFileSystemIsReachedAtItsWebServer) {
  Write("core-site.xml", {{"fs.defaultFS", "hdfs://nn:8020/"}});
  auto site = *ReadHadoopSite(folder_.path());
  EXPECT_EQ(site.default_authority, "nn:8020");
  EXPECT_THAT(site.namenodes, ElementsAre(Pair("nn:8020", ElementsAre("nn"))));
  EXPECT_FALSE(site.https);

  Write("hdfs-site.xml", {{"dfs.namenode.http-address", "0.0.0.0:50070"},
                          {"dfs.namenode.https-address", "web:9999"}});
  site = *ReadHadoopSite(folder_.path());
  EXPECT_THAT(site.namenodes, ElementsAre(Pair("nn:8020", ElementsAre("nn:50070"))));

  Write("hdfs-site.xml", {{"dfs.namenode.http-address", "web:50070"}});
  site = *ReadHadoopSite(folder_.path());
  EXPECT_THAT(site.namenodes, ElementsAre(Pair("nn:8020", ElementsAre("web:50070"))));

  Write("hdfs-site.xml",
        {{"dfs.namenode.https-address", "web:9999"}, {"dfs.http.policy", "HTTPS_ONLY"}});
  site = *ReadHadoopSite(folder_.path());
  EXPECT_THAT(site.namenodes, ElementsAre(Pair("nn:8020", ElementsAre("web:9999"))));
  EXPECT_TRUE(site.https);
  site = *ReadHadoopSite(folder_.path(), /*https=*/false);
  EXPECT_THAT(site.namenodes, ElementsAre(Pair("nn:8020", ElementsAre("nn"))));
  EXPECT_FALSE(site.https);
}

TEST_F(SiteTest, SeveralNamenodesAndSubstitutions) {
  Write("core-site.xml", {{"fs.defaultFS", "hdfs://${dfs.nameservices}"}});
  Write("hdfs-site.xml", {{"dfs.nameservices", "east"},
                          {"dfs.ha.namenodes.east", "a, b"},
                          {"dfs.namenode.http-address.east.a", "h1:9870"},
                          {"dfs.namenode.rpc-address.east.b", "h2:8020"},
                          {"dfs.namenode.http-address.east.b", "0.0.0.0:9870"}});
  const auto site = *ReadHadoopSite(folder_.path());
  EXPECT_EQ(site.default_authority, "east");
  EXPECT_THAT(site.namenodes, ElementsAre(Pair("east", ElementsAre("h1:9870", "h2:9870"))));
}

TEST_F(SiteTest, UnusableConfigurationsAreExplained) {
  const auto error = [this] {
    const auto site = ReadHadoopSite(folder_.path());
    EXPECT_EQ(site.status().code(), absl::StatusCode::kFailedPrecondition) << site.status();
    return std::string(site.status().message());
  };
  EXPECT_THAT(error(), HasSubstr(Path("core-site.xml")));
  Write("core-site.xml", {{"fs.defaultFS", "s3a://bucket"}});
  EXPECT_THAT(error(), HasSubstr("fs.defaultFS is 's3a://bucket'; expected hdfs://host:port"));
  Write("core-site.xml", {});
  EXPECT_THAT(error(), HasSubstr("fs.defaultFS is ''"));
  Write("core-site.xml", {{"fs.defaultFS", "hdfs://nn"}});
  ASSERT_TRUE(base::WriteFileAtomically(Path("hdfs-site.xml"), "<configuration>").ok());
  EXPECT_THAT(error(), HasSubstr("hdfs-site.xml: not valid XML"));
  Write("hdfs-site.xml", {{"dfs.nameservices", "${a}"}, {"a", "${a}"}});  // does not end
  EXPECT_TRUE(ReadHadoopSite(folder_.path()).ok());
}

TEST_F(SiteTest, TheEnvironmentNamesTheConfiguration) {
  auto options = *HdfsOptions::FromVariables(VariablesOf({}));
  EXPECT_THAT(options.default_authority.status().message(),
              HasSubstr("HADOOP_CONF_DIR is not set"));
  const auto variables =
      VariablesOf({{"HADOOP_CONF_DIR", folder_.path()}, {"MUSTER_HDFS_NAMENODES", "other=x:1"}});
  options = *HdfsOptions::FromVariables(variables);
  EXPECT_THAT(options.default_authority.status().message(), HasSubstr("core-site.xml"));
  Write("core-site.xml", {{"fs.defaultFS", "hdfs://nn:8020"}});
  Write("hdfs-site.xml",
        {{"dfs.nameservices", "other"}, {"dfs.namenode.http-address.other", "y:2"}});
  options = *HdfsOptions::FromVariables(variables);
  EXPECT_EQ(*options.default_authority, "nn:8020");
  EXPECT_THAT(options.namenodes["nn:8020"], ElementsAre("nn"));
  EXPECT_THAT(options.namenodes["other"], ElementsAre("x:1"));  // Muster's own variable wins
}

}  // namespace
}  // namespace muster::storage
