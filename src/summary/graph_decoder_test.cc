#include "summary/graph_decoder.h"

#include "base/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/tensorboard.pb.h"
#include "summary/event_writer.h"
#include "summary/folder.h"

namespace muster::summary {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(GraphDecoderTest, ReadsWhatTheWriterWrote) {
  const base::TempDir temp;
  auto writer = EventWriter::Open(temp.path(), "");
  ASSERT_TRUE(writer.ok()) << writer.status();
  const std::vector<GraphNode> nodes = {{.name = "fc/weight",
                                         .op = "VariableV2",
                                         .device = "/job:ps/task:0",
                                         .dtype = base::DType::kFloat32,
                                         .shape = base::Shape{10, 784}},
                                        {.name = "fc/matmul",
                                         .op = "MatMul",
                                         .inputs = {"fc/weight"},
                                         .device = "/job:worker/task:1"}};
  (*writer)->Graph(nodes);
  ASSERT_TRUE((*writer)->Flush().ok());
  const auto run = ReadRun(temp.path());
  ASSERT_TRUE(run.ok()) << run.status();
  const auto decoded = DecodeGraph(run->run.graph_def);
  ASSERT_TRUE(decoded.has_value());
  ASSERT_EQ(decoded->size(), 2U);
  EXPECT_EQ(decoded->at(0).name, "fc/weight");
  EXPECT_EQ(decoded->at(0).device, "/job:ps/task:0");
  EXPECT_THAT(*decoded->at(0).shape, ElementsAre(10, 784));
  EXPECT_EQ(decoded->at(0).bytes, 4 * 10 * 784);
  EXPECT_EQ(decoded->at(1).op, "MatMul");
  EXPECT_THAT(decoded->at(1).inputs, ElementsAre("fc/weight"));
  EXPECT_FALSE(decoded->at(1).shape.has_value());
}

TEST(GraphDecoderTest, AnUnknownSizeHasNoBytes) {
  tensorboard::GraphDef graph;
  auto& node = *graph.add_node();
  (*node.mutable_attr())["dtype"].set_type(tensorboard::DT_FLOAT);
  auto& shape = *(*node.mutable_attr())["shape"].mutable_shape();
  shape.add_dim()->set_size(-1);
  shape.add_dim()->set_size(int64_t{1} << 62);
  const auto decoded = DecodeGraph(graph.SerializeAsString());
  ASSERT_TRUE(decoded.has_value());
  EXPECT_THAT(*decoded->at(0).shape, ElementsAre(-1, int64_t{1} << 62));
  EXPECT_FALSE(decoded->at(0).bytes.has_value());
  shape.mutable_dim(0)->set_size(int64_t{1} << 62);
  EXPECT_FALSE(DecodeGraph(graph.SerializeAsString())->at(0).bytes.has_value());
}

TEST(GraphDecoderTest, RejectsEveryTruncation) {
  tensorboard::GraphDef graph;
  auto& node = *graph.add_node();
  node.set_name("n");
  (*node.mutable_attr())["shape"].mutable_shape()->add_dim()->set_size(3);
  const std::string bytes = graph.SerializeAsString();
  EXPECT_THAT(*DecodeGraph(""), IsEmpty());
  for (size_t size = 1; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeGraph(bytes.substr(0, size)).has_value()) << size;
  }
  EXPECT_TRUE(DecodeGraph(bytes).has_value());
}

}  // namespace
}  // namespace muster::summary
