#include "train/ps/push_codec.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::train {
namespace {

using testing::ElementsAre;
using wire::Frame;

wire::Chunk ChunkOf(const std::vector<float>& values) {
  auto owner = std::make_shared<std::vector<float>>(values);
  return {owner->data(), owner->size() * sizeof(float), owner};
}

std::string BytesOf(const EncodedPush& push) {
  std::string bytes;
  for (const wire::Chunk& chunk : push.payload) {
    bytes.append(static_cast<const char*>(chunk.data), chunk.size);
  }
  return bytes;
}

// As a transport delivers them: in pieces of `size` bytes, at any alignment.
wire::Payload Received(const EncodedPush& push, size_t size) {
  const std::string bytes = BytesOf(push);
  std::vector<wire::Chunk> pieces;
  for (size_t begin = 0; begin < bytes.size(); begin += size) {
    auto owner = std::make_shared<std::string>(bytes.substr(begin, size));
    pieces.push_back({owner->data(), owner->size(), owner});
  }
  return wire::Payload(std::move(pieces));
}

std::vector<float> Read(const wire::Payload& payload, Frame::Precision precision, int64_t n) {
  DensePush push(payload, precision);
  std::vector<float> room(static_cast<size_t>(n));
  const float* values = push.Next(n, room.data());
  return {values, values + n};
}

// Two dense buckets of 3 and 2 elements, a table of 4 rows of 2, 5 bytes of buffers.
ShardShape SmallShape() {
  ShardShape shape;
  shape.elements = 5;
  shape.buckets = {{0, 3}, {3, 2}};
  shape.tables = {{.variable = 1, .first_row = 10, .rows = 4, .width = 2, .offset = 0}};
  shape.table_elements = 8;
  shape.buffer_bytes = 5;
  return shape;
}

Frame FrameOf(int bucket, const EncodedPush& push) {
  wire::Outgoing message;
  message.frame.set_bucket(static_cast<uint32_t>(bucket));
  EncodedPush copy = push;
  std::move(copy).WriteTo(message);
  return message.frame;
}

TEST(PushCodec, SendsFloat32FromWhereItIs) {
  const wire::Chunk first = ChunkOf({1, 2});
  const wire::Chunk second = ChunkOf({3});
  const EncodedPush push = EncodeDense(Frame::FLOAT32, {first, second});
  ASSERT_EQ(push.payload.size(), 2U);
  EXPECT_EQ(push.payload[0].data, first.data);
  EXPECT_EQ(push.payload[1].data, second.data);
}

TEST(PushCodec, ReadsFloat32WhereItArrived) {
  const EncodedPush push = EncodeDense(Frame::FLOAT32, {ChunkOf({1, 2, 3})});
  const wire::Payload payload(push.payload);
  DensePush gradient(payload, Frame::FLOAT32);
  float room[3];
  EXPECT_EQ(gradient.Next(3, room), push.payload[0].data);
}

TEST(PushCodec, DenseRoundTripInAnyPiecesAndPrecision) {
  for (const auto precision : {Frame::FLOAT32, Frame::FLOAT16, Frame::BFLOAT16}) {
    const EncodedPush push = EncodeDense(precision, {ChunkOf({1.5F, -2}), ChunkOf({0.25F})});
    EXPECT_EQ(*PushBytes(SmallShape(), FrameOf(0, push)),
              static_cast<int64_t>(BytesOf(push).size()));
    for (size_t size = 1; size <= BytesOf(push).size(); ++size) {
      EXPECT_THAT(Read(Received(push, size), precision, 3), ElementsAre(1.5F, -2, 0.25F));
    }
  }
}

TEST(PushCodec, LaysRowNumbersBeforeTheirGradients) {
  const float gradients[] = {1, 2, 3, 4};
  const EncodedPush push = EncodeRows(Frame::FLOAT32, {11, 13}, 10, gradients, 2);
  EXPECT_EQ(push.count, 2);
  const std::string bytes = BytesOf(push);
  ASSERT_EQ(bytes.size(), 2 * sizeof(int64_t) + 4 * sizeof(float));
  int64_t rows[2];
  std::memcpy(rows, bytes.data(), sizeof(rows));
  EXPECT_THAT(rows, ElementsAre(1, 3));
  EXPECT_EQ(std::memcmp(bytes.data() + sizeof(rows), gradients, sizeof(gradients)), 0);
}

TEST(PushCodec, RowsRoundTripInAnyPiecesAndPrecision) {
  const float gradients[] = {1.5F, -2, 0.25F, 8};
  for (const auto precision : {Frame::FLOAT32, Frame::FLOAT16, Frame::BFLOAT16}) {
    const EncodedPush push = EncodeRows(precision, {10, 12}, 10, gradients, 2);
    EXPECT_EQ(*PushBytes(SmallShape(), FrameOf(2, push)),
              static_cast<int64_t>(BytesOf(push).size()));
    for (size_t size = 1; size <= BytesOf(push).size(); ++size) {
      const RowsPush decoded(Received(push, size), precision, push.count, 2);
      EXPECT_THAT(decoded.rows(), ElementsAre(0, 2));
      EXPECT_THAT(std::vector<float>(decoded.gradients(), decoded.gradients() + 4),
                  ElementsAre(1.5F, -2, 0.25F, 8));
    }
  }
}

TEST(PushCodec, NoRowsIsEmpty) {
  const EncodedPush push = EncodeRows(Frame::FLOAT16, {}, 10, nullptr, 2);
  EXPECT_EQ(BytesOf(push), "");
  EXPECT_EQ(*PushBytes(SmallShape(), FrameOf(2, push)), 0);
  EXPECT_THAT(RowsPush(wire::Payload(), Frame::FLOAT16, 0, 2).rows(), ElementsAre());
}

TEST(PushCodec, BuffersAreTheirBytes) {
  const auto bytes = std::make_shared<std::vector<std::byte>>(5, std::byte{7});
  const EncodedPush push = EncodeBuffers(bytes);
  EXPECT_EQ(push.payload.at(0).data, bytes->data());
  EXPECT_EQ(*PushBytes(SmallShape(), FrameOf(3, push)), 5);
}

TEST(PushCodec, SkippedHasNoPayload) {
  for (int bucket = 0; bucket < SmallShape().bucket_count(); ++bucket) {
    EXPECT_EQ(*PushBytes(SmallShape(), FrameOf(bucket, EncodeSkipped())), 0);
  }
}

TEST(PushCodec, RejectsFramesThatDoNotFitTheShard) {
  EXPECT_FALSE(PushBytes(SmallShape(), FrameOf(4, {})).ok());
  EXPECT_FALSE(PushBytes(SmallShape(), FrameOf(2, {.count = 5})).ok());
  EXPECT_FALSE(PushBytes(SmallShape(), FrameOf(2, {.count = -1})).ok());
  Frame frame = FrameOf(0, {});
  frame.set_precision(static_cast<Frame::Precision>(9));
  EXPECT_FALSE(PushBytes(SmallShape(), frame).ok());
}

}  // namespace
}  // namespace muster::train
