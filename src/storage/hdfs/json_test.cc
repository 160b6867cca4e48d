#include "storage/hdfs/json.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::storage {
namespace {

TEST(HdfsJsonTest, AStatus) {
  const auto file = ParseHdfsStatus(
      R"({"FileStatus":{"pathSuffix":"","type":"FILE","length":24930,"fileId":16387,
          "modificationTime":1320173277227,"owner":"x"}})");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->kind, HdfsStatus::Kind::kFile);
  EXPECT_EQ(file->bytes, 24930);
  EXPECT_EQ(file->modified, 1320173277227);
  EXPECT_EQ(file->id, 16387);
  HdfsStatus other = *file;
  EXPECT_TRUE(other.IsSame(*file));
  other.id = 1;
  EXPECT_FALSE(other.IsSame(*file));
  const auto folder = ParseHdfsStatus(R"({"FileStatus":{"type":"DIRECTORY","length":0}})");
  EXPECT_EQ(folder->kind, HdfsStatus::Kind::kFolder);
  EXPECT_EQ(ParseHdfsStatus(R"({"FileStatus":{"type":"SYMLINK","length":0}})")->kind,
            HdfsStatus::Kind::kOther);
}

TEST(HdfsJsonTest, ListingsOfBothKinds) {
  const std::string entries =
      R"({"FileStatuses":{"FileStatus":[{"pathSuffix":"a","type":"FILE","length":1},
          {"pathSuffix":"\u00e4","type":"DIRECTORY","length":0}]}})";
  const auto whole = ParseHdfsPage(entries);
  ASSERT_TRUE(whole.ok()) << whole.status();
  ASSERT_EQ(whole->entries.size(), 2u);
  EXPECT_EQ(whole->entries[1].name, "ä");
  EXPECT_EQ(whole->remaining, 0);
  const auto page = ParseHdfsPage(absl::StrCat(R"({"DirectoryListing":{"partialListing":)", entries,
                                               R"(,"remainingEntries":7}})"));
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->entries.size(), 2u);
  EXPECT_EQ(page->remaining, 7);
}

TEST(HdfsJsonTest, MalformedResponsesAreRejected) {
  for (const char* text :
       {"", "null", "[]", "{", "<html>", R"({"FileStatus":7})", R"({"FileStatus":{"type":"FILE"}})",
        R"({"FileStatus":{"type":"FILE","length":-1}})", R"({"FileStatus":{"type":1,"length":1}})",
        R"({"FileStatus":{"type":"FILE","length":1e300}})",
        R"({"FileStatus":{"type":"FILE","length":18446744073709551615}})"}) {
    EXPECT_TRUE(absl::IsDataLoss(ParseHdfsStatus(text).status())) << text;
    EXPECT_TRUE(absl::IsDataLoss(ParseHdfsPage(text).status())) << text;
  }
  for (const char* name : {"a/b", ".", "..", "/"}) {
    const std::string listing =
        absl::StrCat(R"({"FileStatuses":{"FileStatus":[{"type":"FILE","length":1,"pathSuffix":")",
                     name, R"("}]}})");
    EXPECT_TRUE(absl::IsDataLoss(ParseHdfsPage(listing).status())) << name;
  }
  EXPECT_FALSE(
      ParseHdfsPage(R"({"DirectoryListing":{"partialListing":{},"remainingEntries":0}})").ok());
}

TEST(HdfsJsonTest, ExceptionsAndBooleans) {
  const auto exception = ParseHdfsException(
      R"({"RemoteException":{"exception":"IOException","message":"first\nsecond"}})");
  ASSERT_TRUE(exception.has_value());
  EXPECT_EQ(exception->name, "IOException");
  EXPECT_EQ(exception->message, "first");
  EXPECT_FALSE(ParseHdfsException(R"({"RemoteException":{}})").has_value());
  EXPECT_FALSE(ParseHdfsException("<html>").has_value());
  EXPECT_EQ(ParseHdfsBoolean(R"({"boolean":true})"), true);
  EXPECT_EQ(ParseHdfsBoolean(R"({"boolean":false})"), false);
  EXPECT_EQ(ParseHdfsBoolean(R"({"boolean":1})"), std::nullopt);
  EXPECT_EQ(ParseHdfsBoolean(""), std::nullopt);
}

}  // namespace
}  // namespace muster::storage
