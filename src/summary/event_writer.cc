#include "summary/event_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/bytes/record.h"
#include "base/files/files.h"
#include "base/status_macros.h"
#include "base/text/terminal_text.h"
#include "proto/tensorboard.pb.h"
#include "summary/histogram.h"

namespace muster::summary {
namespace {

constexpr size_t kBufferBytes = 256 << 10;
constexpr int kMaxFilesPerSecond = 1000;

std::string HostName() {
  char name[256] = {};
  if (::gethostname(name, sizeof(name) - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

// Creates a new file and returns it with its path. If several writers start within a second, a
// later one gets a name that sorts after the earlier ones.
absl::StatusOr<std::pair<std::string, base::UniqueFd>> CreateFile(const std::string& folder,
                                                                  absl::string_view suffix,
                                                                  absl::Time now) {
  const std::string name =
      absl::StrFormat("events.out.tfevents.%010d.%s%s%s", absl::ToUnixSeconds(now), HostName(),
                      suffix.empty() ? "" : ".", suffix);
  for (int i = 0; i < kMaxFilesPerSecond; ++i) {
    const std::string path =
        base::JoinPath(folder, i == 0 ? name : absl::StrFormat("%s.%03d", name, i));
    base::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (fd.valid()) return std::make_pair(path, std::move(fd));
    if (errno != EEXIST) return absl::ErrnoToStatus(errno, path);
  }
  return absl::ResourceExhaustedError(
      absl::StrCat(folder, ": too many event files within one second; start fewer tasks at once"));
}

tensorboard::DataType DataTypeOf(base::DType dtype) {
  switch (dtype) {
    case base::DType::kBool:
      return tensorboard::DT_BOOL;
    case base::DType::kUint8:
      return tensorboard::DT_UINT8;
    case base::DType::kInt8:
      return tensorboard::DT_INT8;
    case base::DType::kInt16:
      return tensorboard::DT_INT16;
    case base::DType::kInt32:
      return tensorboard::DT_INT32;
    case base::DType::kInt64:
      return tensorboard::DT_INT64;
    case base::DType::kFloat16:
      return tensorboard::DT_HALF;
    case base::DType::kBfloat16:
      return tensorboard::DT_BFLOAT16;
    case base::DType::kFloat32:
      return tensorboard::DT_FLOAT;
    case base::DType::kFloat64:
      return tensorboard::DT_DOUBLE;
  }
  return tensorboard::DT_INVALID;
}

tensorboard::TensorShapeProto ShapeProto(const base::Shape& shape) {
  tensorboard::TensorShapeProto proto;
  for (const int64_t size : shape) proto.add_dim()->set_size(size);
  return proto;
}

void AddNode(const GraphNode& node, tensorboard::GraphDef& graph) {
  tensorboard::NodeDef& proto = *graph.add_node();
  proto.set_name(base::Printable(node.name));
  proto.set_op(base::Printable(node.op));
  for (const std::string& input : node.inputs) proto.add_input(base::Printable(input));
  proto.set_device(base::Printable(node.device));
  auto& attributes = *proto.mutable_attr();
  if (node.dtype) attributes["dtype"].set_type(DataTypeOf(*node.dtype));
  if (node.shape) {
    *attributes["shape"].mutable_shape() = ShapeProto(*node.shape);
    // TensorBoard labels the edges with it.
    *attributes["_output_shapes"].mutable_list()->add_shape() = ShapeProto(*node.shape);
  }
}

void SetHistogram(const Histogram& histogram, tensorboard::HistogramProto& proto) {
  proto.set_min(histogram.min);
  proto.set_max(histogram.max);
  proto.set_num(histogram.count);
  proto.set_sum(histogram.sum);
  proto.set_sum_squares(histogram.sum_of_squares);
  proto.mutable_bucket_limit()->Add(histogram.limits.begin(), histogram.limits.end());
  proto.mutable_bucket()->Add(histogram.counts.begin(), histogram.counts.end());
}

void AddScalar(const std::string& tag, double value, tensorboard::Event& event) {
  tensorboard::Summary::Value& proto = *event.mutable_summary()->add_value();
  proto.set_tag(tag);
  proto.set_simple_value(static_cast<float>(value));
}

}  // namespace

absl::StatusOr<std::unique_ptr<EventWriter>> EventWriter::Open(const std::string& folder,
                                                               absl::string_view suffix,
                                                               const base::Clock& clock) {
  if (suffix.find('/') != absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("the suffix '", suffix, "' of an event file contains a '/'; leave it out"));
  }
  MUSTER_RETURN_IF_ERROR(base::MakeDirectories(folder, 0777));
  MUSTER_ASSIGN_OR_RETURN(auto file, CreateFile(folder, suffix, clock.Now()));
  std::unique_ptr<EventWriter> writer(
      new EventWriter(std::move(file.first), std::move(file.second), clock));
  tensorboard::Event version;
  version.set_file_version("brain.Event:2");
  writer->Write(version);
  MUSTER_RETURN_IF_ERROR(writer->Flush());
  return writer;
}

EventWriter::EventWriter(std::string path, base::UniqueFd fd, const base::Clock& clock)
    : path_(std::move(path)), fd_(std::move(fd)), clock_(clock) {}

EventWriter::~EventWriter() { Flush().IgnoreError(); }

void EventWriter::Scalar(absl::string_view tag, int64_t step, double value) {
  tensorboard::Event event;
  event.set_step(step);
  AddScalar(base::Printable(tag), value, event);
  Write(event);
}

void EventWriter::Histogram(absl::string_view tag, int64_t step, absl::Span<const float> values) {
  int64_t non_finite = 0;
  const summary::Histogram histogram = MakeHistogram(values, non_finite);
  tensorboard::Event event;
  event.set_step(step);
  const std::string name = base::Printable(tag);
  tensorboard::Summary::Value& proto = *event.mutable_summary()->add_value();
  proto.set_tag(name);
  SetHistogram(histogram, *proto.mutable_histo());
  if (non_finite > 0) {
    AddScalar(absl::StrCat(name, "/non_finite"), static_cast<double>(non_finite), event);
  }
  Write(event);
}

void EventWriter::Graph(absl::Span<const GraphNode> nodes) {
  tensorboard::GraphDef graph;
  for (const GraphNode& node : nodes) AddNode(node, graph);
  tensorboard::Event event;
  graph.SerializeToString(event.mutable_graph_def());
  Write(event);
}

void EventWriter::Restarted(int64_t step) {
  tensorboard::Event event;
  event.set_step(step);
  event.mutable_session_log()->set_status(tensorboard::SessionLog::START);
  Write(event);
}

absl::Status EventWriter::Flush() {
  absl::MutexLock lock(&mutex_);
  WriteBuffer();
  return status_;
}

void EventWriter::Write(tensorboard::Event& event) {
  event.set_wall_time(static_cast<double>(absl::ToUnixMicros(clock_.Now())) / 1e6);
  const std::string data = event.SerializeAsString();
  absl::MutexLock lock(&mutex_);
  if (!status_.ok()) return;
  base::AppendRecord(data, buffer_);
  if (buffer_.size() >= kBufferBytes) WriteBuffer();
}

void EventWriter::WriteBuffer() {
  if (!status_.ok() || buffer_.empty()) return;
  // After a failure the file may end in a partial record, so nothing more is appended.
  status_ = base::Annotate(base::WriteAll(fd_.get(), buffer_), path_);
  buffer_.clear();
}

}  // namespace muster::summary
