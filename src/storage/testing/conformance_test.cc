#include "storage/testing/conformance.h"

#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"

namespace muster::storage {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ConformanceTest);

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string ConformanceTest::Content(const std::string& name) {
  const auto content = ReadWhole(files(), At(name));
  return content.ok() ? *content : absl::StrCat("!", content.status().message());
}

std::vector<std::string> ConformanceTest::Relative(
    const absl::StatusOr<std::vector<FileInfo>>& infos) {
  EXPECT_TRUE(infos.ok()) << infos.status();
  std::vector<std::string> names;
  if (!infos.ok()) return names;
  const std::string root = At("").name;
  for (const FileInfo& info : *infos) {
    names.emplace_back(absl::StripPrefix(info.url.name, root));
    EXPECT_EQ(info.url.scheme, At("").scheme);
    EXPECT_EQ(info.url.authority, At("").authority);
  }
  return names;
}

std::vector<std::string> ConformanceTest::Names(const std::string& prefix, Depth depth) {
  return Relative(files().List(At(prefix), depth));
}

std::vector<std::string> ConformanceTest::Matching(const std::string& pattern) {
  return Relative(Glob(files(), At(pattern)));
}

TEST_P(ConformanceTest, WrittenFilesAreReadBack) {
  const std::string content("one\0two\r\n\xff", 10);
  ASSERT_EQ(Write("a", content), absl::OkStatus());
  EXPECT_EQ(Content("a"), content);
  ASSERT_EQ(Write("a", "other"), absl::OkStatus());
  EXPECT_EQ(Content("a"), "other");
}

TEST_P(ConformanceTest, AnEmptyFileIsAFile) {
  ASSERT_EQ(Write("empty", ""), absl::OkStatus());
  EXPECT_EQ(Content("empty"), "");
  EXPECT_EQ(files().Stat(At("empty"))->bytes, 0);
  EXPECT_THAT(Names("", Depth::kAll), ElementsAre("empty"));
}

TEST_P(ConformanceTest, NamesCreateFolders) {
  ASSERT_EQ(Write("a/b/c/d", "x"), absl::OkStatus());
  EXPECT_EQ(Content("a/b/c/d"), "x");
  EXPECT_TRUE(absl::IsNotFound(files().Stat(At("a/b")).status()));
  EXPECT_FALSE(files().OpenForReading(At("a/b")).ok());
}

TEST_P(ConformanceTest, StatReturnsSizeAndTime) {
  const absl::Time before = absl::Now() - absl::Minutes(1);
  ASSERT_EQ(Write("a", "12345"), absl::OkStatus());
  const auto info = files().Stat(At("a"));
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->bytes, 5);
  EXPECT_EQ(info->url, At("a"));
  EXPECT_GT(info->modified, before);
  EXPECT_LT(info->modified, before + absl::Minutes(10));
  EXPECT_THAT(info->md5, testing::AnyOf("", "827ccb0eea8a706c4c34a16891f84e7b"));
}

TEST_P(ConformanceTest, AnAbsentFileIsNotFoundAndNamed) {
  for (const absl::Status& status :
       {files().OpenForReading(At("no such")).status(), files().Stat(At("no such")).status(),
        files().Stat(At("no/such")).status()}) {
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr(At("no").ToString()));
  }
  ASSERT_EQ(Write("file", "x"), absl::OkStatus());
  EXPECT_TRUE(absl::IsNotFound(files().Stat(At("file/below")).status()));
  EXPECT_TRUE(absl::IsNotFound(files().OpenForReading(At("file/below")).status()));
  EXPECT_THAT(Names("no such", Depth::kAll), IsEmpty());
  EXPECT_THAT(Names("no/such/", Depth::kHere), IsEmpty());
}

TEST_P(ConformanceTest, RangesAreReadAndEndWhereTheFileEnds) {
  ASSERT_EQ(Write("a", "0123456789"), absl::OkStatus());
  const auto reader = files().OpenForReading(At("a"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->size(), 10);
  const auto read = [&](int64_t offset, size_t bytes) {
    std::string buffer(bytes, '?');
    const auto n = (*reader)->Read(offset, absl::MakeSpan(buffer));
    return n.ok() ? buffer.substr(0, *n) : absl::StrCat("!", n.status().message());
  };
  EXPECT_EQ(read(0, 3), "012");
  EXPECT_EQ(read(4, 1), "4");
  EXPECT_EQ(read(8, 100), "89");
  EXPECT_EQ(read(0, 10), "0123456789");
  EXPECT_EQ(read(10, 5), "");
  EXPECT_EQ(read(int64_t{1} << 60, 5), "");
  EXPECT_EQ(read(3, 0), "");
  char byte = 0;
  EXPECT_TRUE(absl::IsInvalidArgument((*reader)->Read(-1, {&byte, 1}).status()));
}

TEST_P(ConformanceTest, AReaderServesManyThreads) {
  std::string content;
  for (int i = 0; i < 20000; ++i) absl::StrAppend(&content, absl::Hex(i, absl::kZeroPad4));
  ASSERT_EQ(Write("a", content), absl::OkStatus());
  const auto reader = files().OpenForReading(At("a"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::atomic<int> right = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        std::string buffer(20000, '?');
        const auto n = (*reader)->Read(t * 20000, absl::MakeSpan(buffer));
        right += n.ok() && buffer == content.substr(static_cast<size_t>(t) * 20000, 20000) ? 1 : 0;
      });
    }
  }
  EXPECT_EQ(right, 4);
}

TEST_P(ConformanceTest, AFileIsInvisibleBeforeClose) {
  auto writer = files().OpenForWriting(At("a"), IfExists::kReplace);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_EQ((*writer)->Append("half"), absl::OkStatus());
  EXPECT_TRUE(absl::IsNotFound(files().Stat(At("a")).status()));
  EXPECT_THAT(Names("", Depth::kAll), IsEmpty());
  EXPECT_THAT(Names("", Depth::kHere), IsEmpty());
  ASSERT_EQ((*writer)->Append(" and half"), absl::OkStatus());
  ASSERT_EQ((*writer)->Close(), absl::OkStatus());
  EXPECT_EQ(Content("a"), "half and half");
  EXPECT_FALSE((*writer)->Append("more").ok());
  EXPECT_FALSE((*writer)->Close().ok());
  EXPECT_EQ(Content("a"), "half and half");
}

TEST_P(ConformanceTest, ADroppedWriterLeavesNothing) {
  ASSERT_EQ(Write("old", "old"), absl::OkStatus());
  for (const char* name : {"old", "new"}) {
    const auto writer = files().OpenForWriting(At(name), IfExists::kReplace);
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_EQ((*writer)->Append("unfinished"), absl::OkStatus());
  }
  EXPECT_EQ(Content("old"), "old");
  EXPECT_THAT(Names("", Depth::kAll), ElementsAre("old"));
}

TEST_P(ConformanceTest, ALargeFileIsWrittenInPieces) {
  // Larger than one part of any storage's uploads.
  std::string piece(1 << 20, '\0');
  for (size_t i = 0; i < piece.size(); ++i) piece[i] = static_cast<char>(i * 131 >> 8);
  auto writer = files().OpenForWriting(At("large"), IfExists::kReplace);
  ASSERT_TRUE(writer.ok()) << writer.status();
  for (int i = 0; i < 18; ++i) {
    piece[0] = static_cast<char>(i);
    ASSERT_EQ((*writer)->Append(piece), absl::OkStatus());
  }
  ASSERT_EQ((*writer)->Close(), absl::OkStatus());
  const auto reader = files().OpenForReading(At("large"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  ASSERT_EQ((*reader)->size(), 18 << 20);
  std::string buffer(piece.size(), '?');
  for (int i = 0; i < 18; ++i) {
    piece[0] = static_cast<char>(i);
    ASSERT_EQ(*(*reader)->Read(int64_t{i} << 20, absl::MakeSpan(buffer)), buffer.size());
    ASSERT_TRUE(buffer == piece) << i;
  }
}

TEST_P(ConformanceTest, CreatesOnlyIfAbsent) {
  ASSERT_EQ(Write("a", "first", IfExists::kFail), absl::OkStatus());
  EXPECT_TRUE(absl::IsAlreadyExists(Write("a", "second", IfExists::kFail)));
  EXPECT_EQ(Content("a"), "first");
  ASSERT_EQ(files().Delete(At("a")), absl::OkStatus());
  EXPECT_EQ(Write("a", "third", IfExists::kFail), absl::OkStatus());
  EXPECT_EQ(Content("a"), "third");
}

TEST_P(ConformanceTest, OneOfManyConcurrentCreatesSucceeds) {
  if (!GetParam().exclusive) GTEST_SKIP() << "the server does not support conditional writes";
  std::atomic<int> created = 0, refused = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 6; ++i) {
      threads.emplace_back([&, i] {
        const absl::Status status = Write("lock", absl::StrCat("owner ", i), IfExists::kFail);
        created += status.ok() ? 1 : 0;
        refused += absl::IsAlreadyExists(status) ? 1 : 0;
      });
    }
  }
  EXPECT_EQ(created, 1);
  EXPECT_EQ(refused, 5);
  EXPECT_EQ(Content("lock").substr(0, 6), "owner ");
}

TEST_P(ConformanceTest, ConcurrentReplacesLeaveOneWholeFile) {
  if (!GetParam().replaces) GTEST_SKIP() << "the server does not replace files atomically";
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        const std::string content(10000, static_cast<char>('a' + i));
        for (int round = 0; round < 3; ++round) {
          EXPECT_EQ(Write("a", content), absl::OkStatus());
          const auto seen = ReadWhole(files(), At("a"));
          EXPECT_TRUE(seen.ok() || absl::IsAborted(seen.status())) << seen.status();
          EXPECT_TRUE(!seen.ok() || (!seen->empty() && *seen == std::string(10000, seen->front())));
        }
      });
    }
  }
  EXPECT_THAT(Names("", Depth::kAll), ElementsAre("a"));
}

TEST_P(ConformanceTest, ListsByPrefixInByteOrder) {
  for (const char* name : {"b/2", "b/1", "b-x", "ba/1", "a", "c/d/e", "c/x"}) {
    ASSERT_EQ(Write(name, name), absl::OkStatus());
  }
  EXPECT_THAT(Names("", Depth::kAll),
              ElementsAre("a", "b-x", "b/1", "b/2", "ba/1", "c/d/e", "c/x"));
  EXPECT_THAT(Names("", Depth::kHere), ElementsAre("a", "b-x", "b/", "ba/", "c/"));
  EXPECT_THAT(Names("b", Depth::kAll), ElementsAre("b-x", "b/1", "b/2", "ba/1"));
  EXPECT_THAT(Names("b", Depth::kHere), ElementsAre("b-x", "b/", "ba/"));
  EXPECT_THAT(Names("b/", Depth::kHere), ElementsAre("b/1", "b/2"));
  EXPECT_THAT(Names("c/", Depth::kHere), ElementsAre("c/d/", "c/x"));
  EXPECT_THAT(Names("c/d", Depth::kAll), ElementsAre("c/d/e"));
  EXPECT_EQ(files().List(At("b-x"), Depth::kAll)->at(0).bytes, 3);
}

TEST_P(ConformanceTest, GlobsDoNotMatchSlashes) {
  for (const char* name : {"train-0", "train-1", "train-10", "train-x/1", "test-0", "t/train-0"}) {
    ASSERT_EQ(Write(name, ""), absl::OkStatus());
  }
  EXPECT_THAT(Matching("train-*"), ElementsAre("train-0", "train-1", "train-10"));
  EXPECT_THAT(Matching("train-?"), ElementsAre("train-0", "train-1"));
  EXPECT_THAT(Matching("t*-[0-9]"), ElementsAre("test-0", "train-0", "train-1"));
  EXPECT_THAT(Matching("*/*"), ElementsAre("t/train-0", "train-x/1"));
  EXPECT_THAT(Matching("*/train-?"), ElementsAre("t/train-0"));
  EXPECT_THAT(Matching("none*"), IsEmpty());
  EXPECT_THAT(Matching("test-0"), ElementsAre("test-0"));
}

TEST_P(ConformanceTest, AcceptsAnyName) {
  std::vector<std::string> names = {"a b",     "100%", "%41",         "a#b",        "a?b=c",
                                    "a+b",     "ä ö",  "日本",        "semi;colon", "dir x/%2F",
                                    "tilde~",  "a=b",  "back\\slash", "comma,",     "at@x",
                                    "dollar$", "q\"q"};
  if (GetParam().colons) names.push_back("colon:x");
  if (GetParam().lists_markup)
    names.insert(names.end(), {"a&b", "a<b>", "it's", "&amp;", "(1) [2]", "wow!*"});
  for (const std::string& name : names) {
    ASSERT_EQ(Write(name, "in " + name), absl::OkStatus()) << name;
    EXPECT_EQ(Content(name), "in " + name);
    EXPECT_TRUE(files().Stat(At(name)).ok()) << name;
    EXPECT_THAT(Names(name, Depth::kAll), ElementsAre(name));
  }
  EXPECT_THAT(Names("", Depth::kAll), testing::UnorderedElementsAreArray(names));
  for (const std::string& name : names) ASSERT_EQ(files().Delete(At(name)), absl::OkStatus());
  EXPECT_THAT(Names("", Depth::kAll), IsEmpty());
}

TEST_P(ConformanceTest, DeletingTwiceIsOk) {
  ASSERT_EQ(Write("a", "x"), absl::OkStatus());
  EXPECT_EQ(files().Delete(At("a")), absl::OkStatus());
  EXPECT_TRUE(absl::IsNotFound(files().Stat(At("a")).status()));
  EXPECT_EQ(files().Delete(At("a")), absl::OkStatus());
  EXPECT_EQ(files().Delete(At("no/such")), absl::OkStatus());
}

TEST_P(ConformanceTest, AnEmptyFolderIsRemoved) {
  ASSERT_EQ(Write("f/g/x", "x"), absl::OkStatus());
  const absl::Status full = files().Delete(At("f/g/"));
  EXPECT_TRUE(full.ok() || absl::IsFailedPrecondition(full)) << full;
  EXPECT_EQ(Content("f/g/x"), "x");
  ASSERT_EQ(files().Delete(At("f/g/x")), absl::OkStatus());
  for (const char* folder : {"f/g/", "f/", "f/", "no/such/"}) {
    EXPECT_EQ(files().Delete(At(folder)), absl::OkStatus()) << folder;
  }
  EXPECT_THAT(Names("", Depth::kHere), IsEmpty());
}

TEST_P(ConformanceTest, RenameReplacesAtomically) {
  ASSERT_EQ(Write("from", "x"), absl::OkStatus());
  ASSERT_EQ(Write("to", "y"), absl::OkStatus());
  const absl::Status status = files().Rename(At("from"), At("to"));
  if (!GetParam().renames) {
    EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
    return;
  }
  ASSERT_EQ(status, absl::OkStatus());
  EXPECT_EQ(Content("to"), "x");
  EXPECT_THAT(Names("", Depth::kAll), ElementsAre("to"));
  ASSERT_EQ(files().Rename(At("to"), At("new/folder/x")), absl::OkStatus());
  EXPECT_THAT(Names("", Depth::kAll), ElementsAre("new/folder/x"));
  EXPECT_TRUE(absl::IsNotFound(files().Rename(At("to"), At("b"))));
}

TEST_P(ConformanceTest, WritingToAFolderFails) {
  EXPECT_TRUE(absl::IsFailedPrecondition(
      files().OpenForWriting(At("folder/"), IfExists::kReplace).status()));
}

}  // namespace muster::storage
