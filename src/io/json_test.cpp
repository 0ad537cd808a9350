#include "io/json.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "core/testing.h"

namespace antisd::inline io {
namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;

TEST(Json, KeepsTheOrderOfKeysAndPrintsOneLine) {
  const Json value = parse_json(R"({"z": 1, "a": "é\n", "m": [1.5, null, true]})", "x");
  EXPECT_EQ(to_json_line(value), R"({"z":1,"a":"é\n","m":[1.5,null,true]})");
}

TEST(Json, ALineHoldsNoLineEndOfAnyKind) {
  const Json value = {{"a", "\u0085|\u2028|\u2029|\n|\v|\f|\x1C"}};
  EXPECT_EQ(to_json_line(value), R"({"a":"\u0085|\u2028|\u2029|\n|\u000b|\f|\u001c"})");
  EXPECT_EQ(parse_json(to_json_line(value), "x"), value);
}

TEST(Json, SaysWhereTheTextIsWrong) {
  EXPECT_THAT(error_of([] { parse_json("{\"a\": }", "rows.jsonl:7"); }),
              AllOf(HasSubstr("rows.jsonl:7: not valid JSON"), HasSubstr("column 7")));
  EXPECT_THAT(error_of([] { parse_json("\"\\ud800\"", "f"); }), HasSubstr("surrogate"));
  EXPECT_THAT(error_of([] { parse_json("\"\xFF\"", "f"); }), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of([] { parse_json("", "f"); }), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of([] { parse_json("1 2", "f"); }), HasSubstr("not valid JSON"));
}

TEST(Json, BoundsDepthAndKeys) {
  const std::string deep(300, '[');
  EXPECT_THAT(error_of([&] { parse_json(deep, "f"); }), HasSubstr("deeper than 200"));
  EXPECT_NO_THROW(parse_json(std::string(200, '[') + std::string(200, ']'), "f"));
  std::string wide = "{";
  for (int i = 0; i <= kMaxOrderedKeys; ++i)
    wide += fmt::format("\"{}\":{},", i, i);
  wide.back() = '}';
  EXPECT_THAT(error_of([&] { parse_json(wide, "f"); }), HasSubstr("more than 10000 keys"));
  EXPECT_EQ(parse_sorted_json(wide, "f").size(), kMaxOrderedKeys + 1u);
}

}  // namespace
}  // namespace antisd::inline io
