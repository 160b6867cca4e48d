#include "codec/map_reader.h"

#include "codec/yaml.h"
#include "gtest/gtest.h"

namespace muster::codec {
namespace {

class MapReaderTest : public testing::Test {
 protected:
  MapReader Read(const std::string& text) {
    documents_ = ParseYaml(text, {}, diagnostics_);
    EXPECT_EQ(documents_.size(), 1u) << diagnostics_.ToStatus();
    return MapReader(documents_[0], "the job", diagnostics_);
  }
  std::string Mistakes() const { return std::string(diagnostics_.ToStatus().message()); }

  Diagnostics diagnostics_{"f"};
  std::vector<Node> documents_;
};

TEST_F(MapReaderTest, ReadsEveryKind) {
  MapReader reader = Read(
      "{s: text, n: 5, i: 3, x: 0.5, b: false, d: 1h30m, z: 64KiB, c: red, m: {A: 1, B: b}, l: [a, "
      "2]}");
  EXPECT_EQ(reader.String("s"), "text");
  EXPECT_EQ(reader.String("n"), "5");
  EXPECT_EQ(reader.Int("i", 0, 10), 3);
  EXPECT_EQ(reader.Number("x", 0, 1), 0.5);
  EXPECT_EQ(reader.Bool("b"), false);
  EXPECT_EQ(reader.Duration("d"), absl::Minutes(90));
  EXPECT_EQ(reader.Bytes("z"), 65536);
  EXPECT_EQ(reader.Choice("c", {"red", "green"}), "red");
  EXPECT_EQ(reader.StringMap("m"), (std::map<std::string, std::string>{{"A", "1"}, {"B", "b"}}));
  EXPECT_EQ(reader.StringList("l"), (std::vector<std::string>{"a", "2"}));
  EXPECT_EQ(reader.String("absent"), std::nullopt);
  reader.Finish();
  EXPECT_EQ(Mistakes(), "");
}

TEST_F(MapReaderTest, WrongKindsReadAsAbsentAndAreAllReported) {
  MapReader reader = Read(
      "s: [x]\n"
      "i: two\n"
      "r: -1\n"
      "x: 2\n"
      "b: yes\n"
      "d: soon\n"
      "z: big\n"
      "c: gren\n"
      "m: 5\n"
      "l: {}\n"
      "n:\n");
  EXPECT_EQ(reader.String("s"), std::nullopt);
  EXPECT_EQ(reader.Int("i", 0, 10), std::nullopt);
  EXPECT_EQ(reader.Int("r", 0, 10), std::nullopt);
  EXPECT_EQ(reader.Number("x", 0, 1), std::nullopt);
  EXPECT_EQ(reader.Bool("b"), std::nullopt);
  EXPECT_EQ(reader.Duration("d"), std::nullopt);
  EXPECT_EQ(reader.Bytes("z"), std::nullopt);
  EXPECT_EQ(reader.Choice("c", {"red", "green"}), std::nullopt);
  EXPECT_TRUE(reader.StringMap("m").empty());
  EXPECT_TRUE(reader.StringList("l").empty());
  EXPECT_EQ(reader.String("n"), std::nullopt);
  reader.Finish();
  EXPECT_EQ(
      Mistakes(),
      "f:1:4: 's' of the job must be text, not a list\n"
      "f:2:4: 'i' of the job must be a whole number from 0 to 10, not text 'two'\n"
      "f:3:4: 'r' of the job must be a whole number from 0 to 10, not the number -1\n"
      "f:4:4: 'x' of the job must be a number from 0 to 1, not the number 2\n"
      "f:5:4: 'b' of the job must be true or false, not text 'yes'\n"
      "f:6:4: 'd' of the job must be a duration such as 90s, 5m, 1h30m or 2d, not text 'soon'\n"
      "f:7:4: 'z' of the job must be a size such as 512, 64KiB, 100MB or 1.5G, not text 'big'\n"
      "f:8:4: 'c' of the job must be red | green, not text 'gren' (did you mean 'green'?)\n"
      "f:9:4: 'm' of the job must be a map of text, not the number 5\n"
      "f:10:4: 'l' of the job must be a list of text, not a map\n"
      "f:11:1: 'n' of the job must be text, not nothing");
}

TEST_F(MapReaderTest, ValuesWithinListsAndMapsHaveTheirOwnPosition) {
  MapReader reader = Read("m: {A: [], B: b}\nl: [a, {}]\n");
  EXPECT_EQ(reader.StringMap("m").size(), 1u);
  EXPECT_EQ(reader.StringList("l").size(), 1u);
  EXPECT_EQ(Mistakes(),
            "f:1:8: 'A' in 'm' of the job must be text, not a list\n"
            "f:2:8: 'l' of the job must be a list of text, not of a map");
}

TEST_F(MapReaderTest, ListsOfChoices) {
  MapReader reader = Read("a: [red, gren]\nb: red\n");
  EXPECT_EQ(reader.ChoiceList("a", {"red", "green"}), std::vector<std::string>{"red"});
  EXPECT_TRUE(reader.ChoiceList("b", {"red", "green"}).empty());
  EXPECT_EQ(Mistakes(),
            "f:1:10: 'a' of the job must be red | green, not text 'gren' (did you mean 'green'?)\n"
            "f:2:4: 'b' of the job must be a list of red | green, not text 'red'");
}

TEST_F(MapReaderTest, UnknownKeysNameTheNearestOrAll) {
  MapReader reader = Read("replica: 1\nzebra: 2\n");
  reader.Int("replicas", 0, 1);
  reader.String("command");
  reader.Finish();
  EXPECT_EQ(Mistakes(),
            "f:1:1: unknown key 'replica' in the job (did you mean 'replicas'?)\n"
            "f:2:1: unknown key 'zebra' in the job; expected one of: command, replicas");
}

TEST_F(MapReaderTest, RequiredKeys) {
  MapReader reader = Read("a: 1\n");
  EXPECT_NE(reader.Require("a", "a number"), nullptr);
  EXPECT_EQ(reader.Require("name", "the job's name"), nullptr);
  EXPECT_EQ(Mistakes(), "f:1:1: the job lacks 'name'; expected the job's name");
}

TEST_F(MapReaderTest, NonMapIsOneMistakeNotOnePerKey) {
  MapReader reader = Read("[a, b]");
  reader.Require("name", "a name");
  EXPECT_EQ(reader.String("x"), std::nullopt);
  reader.Finish();
  EXPECT_EQ(Mistakes(), "f:1:1: the job must be a map, not a list");
}

TEST_F(MapReaderTest, ManyUnknownKeysAreCheap) {
  std::string text;
  for (int i = 0; i < 90'000; ++i) text += "unknown_key_" + std::to_string(i) + ": 1\n";
  MapReader reader = Read(text);
  for (int i = 0; i < 30; ++i) reader.Find("a_known_key_" + std::to_string(i));
  reader.Finish();
  EXPECT_EQ(diagnostics_.count(), 90'000u);
}

}  // namespace
}  // namespace muster::codec
