#include "worktree/archive.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"
#include "base/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::worktree {
namespace {

using ::testing::HasSubstr;

class Archive : public ::testing::Test {
 protected:
  void Put(const std::string& name, const std::string& content, bool executable = false) {
    const std::string path = base::JoinPath(from_.path(), name);
    ASSERT_TRUE(base::MakeDirectories(base::FolderOf(path)).ok());
    ASSERT_TRUE(base::ReplaceFile(path, content, executable ? 0700 : 0600).ok());
  }

  std::vector<WorkFile> Listing() const {
    auto files = ListWorkDir(from_.path());
    EXPECT_TRUE(files.ok()) << files.status();
    EXPECT_TRUE(HashFiles(from_.path(), *files, "").ok());
    return *std::move(files);
  }

  absl::StatusOr<std::string> Pack(const std::vector<WorkFile>& files) const {
    std::string packed;
    Gzip gzip([&packed](absl::string_view bytes) {
      packed.append(bytes.data(), bytes.size());
      return absl::OkStatus();
    });
    absl::Status status = WriteTar(from_.path(), files,
                                   [&gzip](absl::string_view bytes) { return gzip.Write(bytes); });
    if (status.ok()) status = gzip.Finish();
    if (!status.ok()) return status;
    return packed;
  }

  // Unpacks into an empty folder, `piece` bytes at a time.
  absl::StatusOr<std::string> Unpack(const std::string& packed, size_t piece = 1000) const {
    for (const auto& entry : std::filesystem::directory_iterator(to_.path())) {
      std::filesystem::remove_all(entry);
    }
    return UnpackMore(packed, piece);
  }

  absl::StatusOr<std::string> UnpackMore(const std::string& packed, size_t piece = 1000) const {
    auto folder = base::ConfinedFolder::Open(to_.path());
    if (!folder.ok()) return folder.status();
    Unpacker unpacker(*folder);
    for (size_t at = 0; at < packed.size(); at += piece) {
      const absl::Status status = unpacker.Write(absl::string_view(packed).substr(at, piece));
      if (!status.ok()) return status;
    }
    return unpacker.Finish();
  }

  static std::string DigestOf(const std::vector<WorkFile>& files) {
    PackageDigest digest;
    for (const WorkFile& file : files) digest.Add(file);
    return digest.Finish();
  }

  std::string RunLocation(const std::string& name) const {
    return base::ReadFile(base::JoinPath(to_.path(), name)).value_or("(none)");
  }

  const base::TempDir from_, to_;
};

TEST_F(Archive, ArchivesAreUnpackedInPiecesOfAnySize) {
  const std::string long_name = std::string(90, 'a') + "/" + std::string(90, 'b') + "/ü.txt";
  Put("train.py", "print(1)\n");
  Put("run.sh", "#!/bin/sh\n", /*executable=*/true);
  Put("empty", "");
  Put(long_name, std::string(513, 'x'));
  Put("large", std::string(3 << 20, 'y'));
  ASSERT_EQ(::symlink("train.py", base::JoinPath(from_.path(), "link").c_str()), 0);
  const auto packed = Pack(Listing());
  ASSERT_TRUE(packed.ok()) << packed.status();
  for (const size_t piece : {size_t{1}, size_t{511}, size_t{4 << 20}}) {
    const auto digest = Unpack(*packed, piece);
    ASSERT_TRUE(digest.ok()) << piece << digest.status();
    EXPECT_EQ(*digest, DigestOf(Listing()));
    EXPECT_EQ(RunLocation("train.py"), "print(1)\n");
    EXPECT_EQ(RunLocation("link"), "print(1)\n");
    EXPECT_EQ(RunLocation("empty"), "");
    EXPECT_EQ(RunLocation(long_name), std::string(513, 'x'));
    EXPECT_EQ(RunLocation("large"), std::string(3 << 20, 'y'));
    struct stat info {};
    ASSERT_EQ(::stat(base::JoinPath(to_.path(), "run.sh").c_str(), &info), 0);
    EXPECT_NE(info.st_mode & 0100, 0U);
  }
}

TEST_F(Archive, TheSameFilesAreTheSameBytes) {
  Put("b", "2");
  Put("a/x", "1");
  const auto first = Pack(Listing());
  Put("a/x", "1");  // rewritten: another time and inode
  const auto second = Pack(Listing());
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, *second);
}

TEST_F(Archive, DetectsAFileThatChanges) {
  Put("a", "12345");
  auto files = Listing();
  for (const char* now : {"1234", "123456", "54321"}) {
    Put("a", now);
    EXPECT_EQ(Pack(files).status().code(), absl::StatusCode::kAborted) << now;
  }
}

TEST_F(Archive, DetectsDamage) {
  Put("a", std::string(2000, 'q'));
  const std::string packed = Pack(Listing()).value();
  EXPECT_EQ(Unpack("").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Unpack("not compressed at all").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Unpack(packed + "more").status().code(), absl::StatusCode::kDataLoss);
  for (size_t cut = 1; cut < packed.size(); cut += 7) {
    EXPECT_FALSE(Unpack(packed.substr(0, cut)).ok()) << cut;
  }
  for (size_t at = 0; at < packed.size(); ++at) {
    std::string other = packed;
    other[at] = static_cast<char>(other[at] ^ 0x55);
    (void)Unpack(other);  // any result is valid, as long as the call returns
  }
}

TEST_F(Archive, RejectsNamesThatLeaveTheFolder) {
  Put("x", "evil");
  auto files = Listing();
  ASSERT_EQ(files.size(), 1U);
  const std::string root = from_.path();
  std::string packed;
  Gzip gzip([&packed](absl::string_view bytes) {
    packed.append(bytes.data(), bytes.size());
    return absl::OkStatus();
  });
  files[0].path = "../" + root.substr(root.rfind('/') + 1) + "/x";
  ASSERT_TRUE(
      WriteTar(root, files, [&gzip](absl::string_view bytes) { return gzip.Write(bytes); }).ok());
  ASSERT_TRUE(gzip.Finish().ok());
  EXPECT_THAT(std::string(Unpack(packed).status().message()),
              HasSubstr("is not a path within a folder"));
}

TEST_F(Archive, LinksOfAnEarlierArchiveCannotLeaveTheFolder) {
  const base::TempDir elsewhere;
  Put("deep/x", "evil");
  std::vector<WorkFile> files = Listing();
  const std::string second = Pack(files).value();
  std::string first;
  for (const std::string& target : {elsewhere.path(), std::string("../../") + elsewhere.path()}) {
    first = Pack({{.path = "deep", .link_target = target}}).value();
    ASSERT_TRUE(Unpack(first).ok());
    const auto refused = UnpackMore(second);
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kDataLoss) << refused.status();
    EXPECT_TRUE(std::filesystem::is_empty(elsewhere.path()));
  }
  // It does not replace a file of another archive either.
  ASSERT_TRUE(Unpack(second).ok());
  EXPECT_EQ(UnpackMore(second).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(Archive, TheDigestCoversNameModeContentAndTarget) {
  Put("a", "1");
  const std::vector<WorkFile> files = Listing();
  const std::string digest = Unpack(Pack(files).value()).value();
  EXPECT_EQ(digest, DigestOf(files));
  Put("a", "2");
  EXPECT_NE(Unpack(Pack(Listing()).value()).value(), digest);
  Put("a", "1", /*executable=*/true);
  EXPECT_NE(Unpack(Pack(Listing()).value()).value(), digest);
  std::filesystem::remove(base::JoinPath(from_.path(), "a"));
  Put("b", "1");
  EXPECT_NE(Unpack(Pack(Listing()).value()).value(), digest);
  const WorkFile link{.path = "l", .link_target = "b"}, other{.path = "l", .link_target = "c"};
  EXPECT_EQ(Unpack(Pack({link}).value()).value(), DigestOf({link}));
  EXPECT_NE(Unpack(Pack({other}).value()).value(), DigestOf({link}));
  // A link target that imitates the next entry does not give the same digest.
  const WorkFile next{.path = "m", .link_target = "d"};
  const WorkFile both{.path = "l", .link_target = absl::StrCat("b\n", next.mode, "  1 m d")};
  EXPECT_NE(DigestOf({both}), DigestOf({link, next}));
}

}  // namespace
}  // namespace muster::worktree
