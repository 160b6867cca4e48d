#include "data/tfrecord/record_file.h"

#include <sys/stat.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/bytes/record.h"
#include "base/files/files.h"
#include "base/testing.h"
#include "data/testing.h"
#include "data/tfrecord/record_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class RecordFileTest : public testing::Test {
 protected:
  struct Outcome {
    std::vector<std::string> records;
    absl::Status status;
    int64_t damaged = 0;
    int64_t bytes_left_out = 0;
    std::vector<std::string> problems;
  };

  std::string Path(const std::string& name) const { return dir_.path() + "/" + name; }

  void Write(const std::string& name, const std::vector<std::string>& records,
             Compression compression) {
    auto writer = RecordWriter::Open(Path(name), compression);
    ASSERT_TRUE(writer.ok()) << writer.status();
    for (const std::string& record : records) ASSERT_TRUE(writer->Write(record).ok());
    ASSERT_TRUE(writer->Close().ok());
  }

  Outcome Read(const std::string& name, OnError on_error = OnError::kFail,
               const RecordFile::Options& options = {}) const {
    Outcome outcome;
    const auto file = RecordFile::Open(Path(name), options);
    if (!file.ok()) return {.status = file.status()};
    RecordReader reader(*file, on_error);
    for (;;) {
      const auto record = reader.Next();
      if (!record.ok()) outcome.status = record.status();
      if (!record.ok() || !record->has_value()) break;
      outcome.records.emplace_back((*record)->data);
    }
    EXPECT_EQ(reader.Next().status(), outcome.status);  // the error is sticky
    outcome.damaged = reader.damaged_records();
    outcome.bytes_left_out = reader.bytes_left_out();
    outcome.problems = reader.problems();
    return outcome;
  }

  Outcome ReadBytes(absl::string_view bytes, OnError on_error = OnError::kFail) const {
    WriteBytes(Path("bytes"), bytes);
    return Read("bytes", on_error);
  }

  base::TempDir dir_;
};

std::string Frame(const std::vector<std::string>& records) {
  std::string framed;
  for (const std::string& record : records) base::AppendRecord(record, framed);
  return framed;
}

std::string Contents(const std::string& path) { return base::ReadFile(path).value(); }

TEST_F(RecordFileTest, DetectsEveryCompression) {
  const std::vector<std::string> records = {"", "one", std::string(3'000'000, 'x'), "end"};
  for (const auto compression : {Compression::kNone, Compression::kGzip, Compression::kZlib}) {
    Write("f", records, compression);
    EXPECT_EQ(RecordFile::Open(Path("f"))->compression(), compression);
    EXPECT_EQ(Read("f").records, records);
    EXPECT_EQ(Read("f", OnError::kFail, {.compression = compression}).records, records);
    // Too large for memory: uses an unlinked file.
    EXPECT_EQ(Read("f", OnError::kFail, {.memory = 1000}).records, records);
  }
  EXPECT_EQ(Contents(Path("f")).substr(0, 1), "\x78");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_.path()), {}), 1);
}

TEST_F(RecordFileTest, PlainFilesContainOnlyRecords) {
  Write("f", {"a", "bc"}, Compression::kNone);
  EXPECT_EQ(Contents(Path("f")), Frame({"a", "bc"}));
  Write("empty", {}, Compression::kNone);
  EXPECT_EQ(Contents(Path("empty")), "");
  EXPECT_THAT(Read("empty").records, IsEmpty());
  EXPECT_TRUE(Read("empty").status.ok());
}

TEST_F(RecordFileTest, AnUnclosedWriterLeavesNothing) {
  {
    auto writer = RecordWriter::Open(Path("f"), Compression::kGzip);
    ASSERT_TRUE(writer->Write("x").ok());
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir_.path()));
  EXPECT_THAT(RecordWriter::Open(Path("no/f"), Compression::kNone).status().message(),
              HasSubstr("cannot be written"));
}

TEST_F(RecordFileTest, DamagedDataNamesFileRecordAndByte) {
  std::string bytes = Frame({"first", "second", "third"});
  bytes[21 + 12 + 2] ^= 1;
  const Outcome failed = ReadBytes(bytes);
  EXPECT_THAT(failed.records, ElementsAre("first"));
  EXPECT_EQ(failed.status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(
      failed.status.message(),
      absl::StrCat(Path("bytes"), ", record 1 at byte 21: the checksum of its data is wrong"));
  const Outcome skipped = ReadBytes(bytes, OnError::kSkip);
  EXPECT_TRUE(skipped.status.ok());
  EXPECT_THAT(skipped.records, ElementsAre("first", "third"));
  EXPECT_EQ(skipped.damaged, 1);
  EXPECT_EQ(skipped.bytes_left_out, 0);
  EXPECT_THAT(skipped.problems, ElementsAre(HasSubstr("record 1 at byte 21")));
}

TEST_F(RecordFileTest, ADamagedLengthCostsTheRestOfTheFile) {
  std::string bytes = Frame({"first", "second", "third"});
  bytes[21] ^= 1;
  EXPECT_THAT(ReadBytes(bytes).status.message(),
              HasSubstr("record 1 at byte 21: the checksum of its length is wrong"));
  const Outcome skipped = ReadBytes(bytes, OnError::kSkip);
  EXPECT_TRUE(skipped.status.ok());
  EXPECT_THAT(skipped.records, ElementsAre("first"));
  EXPECT_EQ(skipped.bytes_left_out, 43);
  EXPECT_EQ(skipped.problems.size(), 1);
}

TEST_F(RecordFileTest, TruncationAtAnyByteIsDetected) {
  const std::string bytes = Frame({"first", "second"});
  for (size_t size = 1; size < bytes.size(); ++size) {
    if (size == 21) continue;  // between the records
    const Outcome outcome = ReadBytes(absl::string_view(bytes).substr(0, size));
    EXPECT_EQ(outcome.status.code(), absl::StatusCode::kDataLoss) << size;
    EXPECT_EQ(outcome.records.size(), size < 21 ? 0 : 1) << size;
    EXPECT_THAT(outcome.status.message(), HasSubstr("truncated")) << size;
  }
}

TEST_F(RecordFileTest, OversizedLengthsAreRejected) {
  for (const uint64_t claim : {uint64_t{1} << 60, ~uint64_t{0}, ~uint64_t{0} - 15, uint64_t{6}}) {
    std::string header(reinterpret_cast<const char*>(&claim), sizeof(claim));
    std::string framed;
    base::AppendRecord(header, framed);  // its footer is the checksum of those eight bytes
    const std::string bytes = absl::StrCat(header, framed.substr(20), "data", "1234");
    EXPECT_THAT(ReadBytes(bytes).status.message(),
                HasSubstr(absl::StrCat("record 0 at byte 0: its length is ", claim,
                                       " bytes, but 8 follow")));
  }
}

TEST_F(RecordFileTest, OtherFilesAreRejected) {
  EXPECT_THAT(ReadBytes("<html>not found</html>").status.message(),
              HasSubstr("the file is damaged, or not a TFRecord file"));
  EXPECT_EQ(Read("absent").status.code(), absl::StatusCode::kNotFound);
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(Read("pipe").status.message(), HasSubstr("not a regular file"));
  EXPECT_THAT(RecordFile::Open(dir_.path()).status().message(), HasSubstr("not a regular file"));
}

TEST_F(RecordFileTest, DamagedCompression) {
  const std::vector<std::string> records(1000, "some text that does not compress to nothing");
  const std::string good = Gzip(Frame(records));
  const std::string cut = good.substr(0, good.size() - 9);
  EXPECT_THAT(ReadBytes(cut).status.message(),
              testing::AllOf(HasSubstr("truncated"), HasSubstr("of the decompressed content")));
  const Outcome skipped = ReadBytes(cut, OnError::kSkip);
  EXPECT_TRUE(skipped.status.ok());
  EXPECT_EQ(skipped.problems.size(), 1);
  EXPECT_EQ(Read("bytes", OnError::kFail, {.compression = Compression::kZlib}).status.code(),
            absl::StatusCode::kDataLoss);
  // A decompression bomb is stopped at the limit.
  WriteBytes(Path("bomb"), Gzip(std::string(20'000'000, '\0')));
  EXPECT_EQ(
      Read("bomb", OnError::kFail, {.memory = 1 << 20, .decompressed = 10'000'000}).status.code(),
      absl::StatusCode::kResourceExhausted);
}

TEST_F(RecordFileTest, FilesByGlobAreSorted) {
  for (const char* name : {"b-2", "b-10", "b-1", "a [x]"}) Write(name, {}, Compression::kNone);
  EXPECT_THAT(MatchFiles(Path("b-*")).value(), ElementsAre(Path("b-1"), Path("b-10"), Path("b-2")));
  EXPECT_THAT(MatchFiles(Path("a [x]")).value(), ElementsAre(Path("a [x]")));
  EXPECT_THAT(MatchFiles(Path("c-*")).status().message(),
              HasSubstr("no file matches " + Path("c-*")));
  EXPECT_EQ(MatchFiles("gs://bucket/x").status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace muster::data
