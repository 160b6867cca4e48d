// Reads arbitrary bytes as a TFRecord file. No policy reads beyond the end, and the records that
// the failing policy reads before the damage are also read by the skipping one.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "data/tfrecord/record_file.h"

namespace {

std::vector<std::string> Read(const muster::data::RecordFile& file, muster::data::OnError policy) {
  muster::data::RecordReader reader(file, policy);
  std::vector<std::string> records;
  for (;;) {
    const auto record = reader.Next();
    if (!record.ok() && policy == muster::data::OnError::kSkip) std::abort();
    if (!record.ok() || !record->has_value()) return records;
    records.emplace_back((*record)->data);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto& kPath = *new std::string(absl::StrCat("/tmp/tfrecord-fuzzer-", ::getpid()));
  std::ofstream(kPath, std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  const auto file =
      muster::data::RecordFile::Open(kPath, {.memory = 1 << 16, .decompressed = 1 << 22});
  ::unlink(kPath.c_str());
  if (!file.ok()) return 0;
  const auto strict = Read(*file, muster::data::OnError::kFail);
  const auto lenient = Read(*file, muster::data::OnError::kSkip);
  if (strict.size() > lenient.size()) std::abort();
  for (size_t i = 0; i < strict.size(); ++i) {
    if (strict[i] != lenient[i]) std::abort();
  }
  return 0;
}
