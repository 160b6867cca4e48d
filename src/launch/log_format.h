// Layout of a task's log; docs/formats/log.md describes it.
//
//   worker-1.log        the segment being written: the task's output, byte for byte
//   worker-1.log.1, .2  earlier segments, oldest first by number
//   worker-1.idx        IndexRecords, appended
#pragma once

#include <cstdint>
#include <string>

#include "cluster/task_id.h"

namespace muster {

// Says that from this place on, output came at `unix_micros` or later. Native byte order: an index
// is read on the machine that wrote it.
struct IndexRecord {
  int64_t unix_micros;
  uint32_t segment;  // counts from 1
  uint32_t attempt;  // counts from 0
  uint64_t offset;   // within the segment
};
static_assert(sizeof(IndexRecord) == 24);

// "worker-1": the start of the file names.
std::string LogStem(const TaskId& task);
std::string CurrentLogPath(const std::string& directory, const std::string& stem);
std::string RotatedLogPath(const std::string& directory, const std::string& stem, uint32_t segment);
std::string LogIndexPath(const std::string& directory, const std::string& stem);
// Number of the segment that CurrentLogPath holds: one more than the highest rotated one.
uint32_t CurrentSegment(const std::string& directory, const std::string& stem);
// Number of the oldest segment that still exists.
uint32_t OldestSegment(const std::string& directory, const std::string& stem);

}  // namespace muster
