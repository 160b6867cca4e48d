// Layout of a task's log; docs/formats/log.md describes it.
//
//   worker-1.log        the segment being written: the task's output, byte for byte
//   worker-1.log.1, .2  earlier segments, oldest first by number
//   worker-1.idx        IndexRecords, appended
#pragma once

#include <cstdint>
#include <string>

#include "cluster/task_id.h"

namespace muster::supervise {

// Output from this position on was written at `unix_micros` or later. Stored in native byte order:
// an index is read only on the machine that wrote it.
struct IndexRecord {
  int64_t unix_micros;
  uint32_t segment;  // counts from 1
  uint32_t attempt;  // counts from 0
  uint64_t offset;   // within the segment
};
static_assert(sizeof(IndexRecord) == 24);

// Returns the common prefix of the task's file names, such as "worker-1".
std::string LogStem(const cluster::TaskId& task);
std::string CurrentLogPath(const std::string& directory, const std::string& stem);
std::string RotatedLogPath(const std::string& directory, const std::string& stem, uint32_t segment);
std::string LogIndexPath(const std::string& directory, const std::string& stem);
// Returns the number of the segment at CurrentLogPath: one more than the highest rotated one.
uint32_t CurrentSegment(const std::string& directory, const std::string& stem);
// Returns the number of the oldest segment that still exists.
uint32_t OldestSegment(const std::string& directory, const std::string& stem);

}  // namespace muster::supervise
