#include "core/option_set.h"

#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "core/nearest.h"
#include "core/testing.h"

namespace antisd::inline core {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::Pair;

struct Sample {
  bool shuffle = true;
  std::int64_t group_size = 8;
  double lr = 1e-6;
  std::string name = "antisd", recompute = "auto";
  std::vector<std::string> files;
  std::vector<double> betas = {0.9, 0.95};
  StringMap columns;
  IntegerMap samples = {{"aime24", 32}};
  ScalarMap chat;
  OptionSet options;

  Sample() {
    options.add("data.shuffle", shuffle, "new order each epoch");
    options.add("data.files", files, "what to read");
    options.add("data.map", columns, "column names");
    options.add("data.chat", chat, "template variables");
    options.add("rollout.group_size", group_size, "responses per prompt").between(2, 4096);
    options.add("method.name", name, "the method").one_of({"grpo", "antisd"});
    options.add("method.recompute", recompute, "or not").one_of({"auto", "true", "false"});
    options.add("method.gate.lr", lr, "learning rate").above(0);
    options.add("optim.betas", betas, "moments").between(0, 1);
    options.add("eval.n", samples, "samples").at_least(1);
  }
};

// As a word or as TOML's own value; printed as a word.
TEST(OptionSet, AChoiceMayContainTrueAndFalse) {
  for (const char* toml : {"recompute = false", "recompute = \"false\""}) {
    Sample s;
    s.options.load_toml_text(std::string("[method]\n") + toml, "run.toml");
    EXPECT_EQ(s.recompute, "false");
    EXPECT_EQ(s.options.find("method.recompute")->value_toml(), "\"false\"");
  }
  Sample s;
  s.options.assign("method.recompute=true");
  EXPECT_EQ(s.recompute, "true");
  EXPECT_THROW(s.options.assign("method.recompute=1"), InputError);
  EXPECT_THROW(s.options.load_toml_text("[method]\nname = true", "run.toml"), InputError);
}

TEST(OptionSet, ReadsEveryTypeFromToml) {
  Sample s;
  s.options.load_toml_text(R"(
[data]
shuffle = false
files = ["a b.jsonl", "c"]
map = {problem = "question"}
chat = {enable_thinking = false, budget = 3, style = "x"}
[rollout]
group_size = 16
[method]
name = "grpo"
[method.gate]
lr = 1
[optim]
betas = [0.8, 0.9]
[eval.n]
aime25 = 4
)",
                           "run.toml");
  EXPECT_FALSE(s.shuffle);
  EXPECT_THAT(s.files, ElementsAre("a b.jsonl", "c"));
  EXPECT_THAT(s.columns, ElementsAre(Pair("problem", "question")));
  EXPECT_EQ(std::get<bool>(s.chat["enable_thinking"]), false);
  EXPECT_EQ(std::get<std::int64_t>(s.chat["budget"]), 3);
  EXPECT_EQ(s.group_size, 16);
  EXPECT_EQ(s.name, "grpo");
  EXPECT_EQ(s.lr, 1.0);
  EXPECT_THAT(s.betas, ElementsAre(0.8, 0.9));
  EXPECT_THAT(s.samples, ElementsAre(Pair("aime25", 4)));
  EXPECT_TRUE(s.options.find("rollout.group_size")->was_set());
}

TEST(OptionSet, AFileExtendsAnother) {
  const testing::TemporaryFolder folder;
  std::filesystem::create_directories(folder / "runs");
  const auto write = [&](const char* name, const char* text) {
    std::ofstream(folder / name) << text;
  };
  write("base.toml", "[rollout]\ngroup_size = 16\n[method]\nname = 'grpo'\n");
  write("runs/model.toml", "extends = '../base.toml'\n[data]\nshuffle = false\n");
  write("runs/run.toml", "extends = 'model.toml'\n[method]\nname = 'antisd'\n");
  Sample s;
  s.options.load_toml(folder / "runs/run.toml");
  EXPECT_EQ(s.group_size, 16);
  EXPECT_FALSE(s.shuffle);
  EXPECT_EQ(s.name, "antisd");
  EXPECT_THAT(s.options.to_toml(true), ::testing::Not(HasSubstr("extends")));

  const auto refused = [&](const char* name) {
    return error_of([&] { Sample().options.load_toml(folder / name); });
  };
  write("runs/wrong.toml", "[data]\n\nshufle = true\n");
  write("runs/typo.toml", "\nextends = 'wrong.toml'\n[method]\nname = 'antisd'\n");
  EXPECT_THAT(refused("runs/typo.toml"),
              AllOf(HasSubstr("runs/wrong.toml:3"), HasSubstr("data.shuffle")));
  write("runs/lost.toml", "\nextends = 'nowhere.toml'\n");
  EXPECT_THAT(refused("runs/lost.toml"),
              AllOf(HasSubstr("runs/lost.toml:2"), HasSubstr("runs/nowhere.toml")));
  write("runs/number.toml", "extends = 3\n");
  EXPECT_THAT(refused("runs/number.toml"), HasSubstr("must be a string"));
  write("runs/itself.toml", "extends = '../runs/itself.toml'\n");
  EXPECT_THAT(refused("runs/itself.toml"), HasSubstr("extends itself"));
  write("runs/a.toml", "extends = 'b.toml'\n");
  write("runs/b.toml", "# a circle\nextends = 'a.toml'\n");
  EXPECT_THAT(refused("runs/a.toml"), AllOf(HasSubstr("runs/b.toml:2"), HasSubstr("extends")));
}

// A file may be a pipe, as in `antisd config <(...)`, but not one that never ends.
TEST(OptionSet, AFileMayBeAPipeButNotEndless) {
  Sample s;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string text = "[rollout]\ngroup_size = 16\n";
  ASSERT_EQ(write(ends[1], text.data(), text.size()), std::ssize(text));
  close(ends[1]);
  s.options.load_toml(fmt::format("/dev/fd/{}", ends[0]));
  close(ends[0]);
  EXPECT_EQ(s.options.find("rollout.group_size")->value_toml(), "16");
  EXPECT_THAT(error_of([&] { s.options.load_toml("/dev/zero"); }), HasSubstr("longer than"));
}

TEST(OptionSet, AKeyImpliesOthersUnlessTheyWereSetBesideItOrLater) {
  const auto group_size = [](std::initializer_list<const char*> files, const char* line) {
    Sample s;
    for (const char* file : files)
      s.options.load_toml_text(file, "file");
    if (*line != 0) s.options.assign(line);
    s.options.imply("method.name", "rollout.group_size=32");
    return s.group_size;
  };
  const char* preset = "method.name = 'grpo'";
  const char* key = "rollout.group_size = 16";
  EXPECT_EQ(group_size({}, ""), Sample().group_size);  // nobody chose the preset
  EXPECT_EQ(group_size({preset}, ""), 32);
  EXPECT_EQ(group_size({"method.name = 'grpo'\nrollout.group_size = 16"}, ""), 16);
  EXPECT_EQ(group_size({key, preset}, ""), 32);
  EXPECT_EQ(group_size({preset, key}, ""), 16);
  EXPECT_EQ(group_size({preset}, "rollout.group_size=8"), 8);
  EXPECT_EQ(group_size({key}, "method.name=grpo"), 32);
}

TEST(OptionSet, PrintedTomlReadsBackToTheSame) {
  Sample first;
  for (const char* line :
       {"data.files=with \"quote\",and\\slash", "method.gate.lr=0.1", "rollout.group_size=3",
        "data.chat.flag=true", "data.map.answer=reward_model.ground_truth", "eval.n.aime24=1"}) {
    first.options.assign(line);
  }
  EXPECT_THAT(first.files, ElementsAre("with \"quote\"", "and\\slash"));
  EXPECT_EQ(std::get<bool>(first.chat["flag"]), true);
  EXPECT_EQ(first.columns["answer"], "reward_model.ground_truth");
  for (const bool with_help : {false, true}) {
    Sample second;
    second.options.load_toml_text(first.options.to_toml(with_help), "printed");
    EXPECT_EQ(second.options.to_toml(false), first.options.to_toml(false));
    EXPECT_EQ(second.files, first.files);
    EXPECT_EQ(second.lr, 0.1);
  }
}

TEST(OptionSet, UnknownKeysNameTheNearestOne) {
  Sample s;
  EXPECT_THAT(error_of([&] { s.options.load_toml_text("[rollout]\n\ngrup_size = 4", "run.toml"); }),
              AllOf(HasSubstr("run.toml:3: unknown key 'rollout.grup_size'"),
                    HasSubstr("did you mean 'rollout.group_size'?")));
  EXPECT_THAT(error_of([&] { s.options.assign("group_size=4"); }),
              HasSubstr("did you mean 'rollout.group_size'?"));
  EXPECT_THAT(error_of([&] { s.options.load_toml_text("[rollouts]\nx = 1", "run.toml"); }),
              HasSubstr("run.toml:1: unknown key 'rollouts'"));
  EXPECT_THAT(error_of([&] { s.options.assign("zzzzzzzzzzzz=4"); }), HasSubstr("lists every key"));
  EXPECT_THAT(error_of([&] { s.options.assign("rollout.group_size=\xff"); }),
              HasSubstr("not valid UTF-8"));
}

TEST(OptionSet, WrongValuesSayWhatIsAllowed) {
  Sample s;
  EXPECT_THAT(error_of([&] { s.options.assign("rollout.group_size=1"); }),
              HasSubstr("out of range; allowed: 2 to 4096"));
  EXPECT_THAT(error_of([&] { s.options.assign("rollout.group_size=1.5"); }),
              HasSubstr("must be integer"));
  EXPECT_THAT(error_of([&] { s.options.assign("rollout.group_size=many"); }),
              HasSubstr("must be integer"));
  EXPECT_THAT(error_of([&] { s.options.assign("method.gate.lr=0"); }), HasSubstr("above 0"));
  EXPECT_THAT(error_of([&] { s.options.assign("method.gate.lr=nan"); }), HasSubstr("out of range"));
  for (const char* none : {"method.gate.lr=inf", "optim.betas=[0.9, nan]", "data.chat.budget=-inf"})
    EXPECT_THAT(error_of([&] { s.options.assign(none); }), HasSubstr("out of range"));
  EXPECT_THAT(error_of([&] { s.options.load_toml_text("[method.gate]\nlr = +inf", "f"); }),
              HasSubstr("f:2: method.gate.lr = inf is out of range; allowed: above 0"));
  EXPECT_THAT(error_of([&] { s.options.assign("method.name=ppo"); }), HasSubstr("grpo | antisd"));
  EXPECT_THAT(error_of([&] { s.options.assign("eval.n.aime24=0"); }), HasSubstr("at least 1"));
  EXPECT_THAT(error_of([&] { s.options.assign("nonsense"); }), HasSubstr("key=value"));
  EXPECT_THAT(error_of([&] { s.options.load_toml_text("[data]\nfiles = 3", "f"); }),
              HasSubstr("f:2: data.files must be list of strings"));
  EXPECT_THAT(error_of([&] { s.options.load_toml_text("a = \nb", "f"); }),
              HasSubstr("f:1: not valid TOML"));
  EXPECT_THAT(error_of([&] { s.options.load_toml("no/such.toml"); }), HasSubstr("no/such.toml"));
}

TEST(OptionSet, HelpAndMarkdownShowDefaultsAndRanges) {
  Sample s;
  s.options.assign("rollout.group_size=5");
  EXPECT_THAT(s.options.to_help(), HasSubstr("responses per prompt [8; 2 to 4096]"));
  s.options.add("train.more", s.group_size, "further").common_in({"train", "eval"});
  s.options.add("train.rare", s.lr, "seldom");
  EXPECT_EQ(s.options.to_help("eval"), "  train.more  further [5]\n");
  EXPECT_EQ(s.options.to_help("report"), "");
  EXPECT_THAT(s.options.to_markdown(),
              HasSubstr("| `name` | `\"antisd\"` | string, grpo \\| antisd |"));
}

TEST(NearestName, CountsSwapsAsOne) {
  EXPECT_EQ(edit_distance("steps", "stpes"), 1);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(nearest_name("totally-different", {"steps", "seed"}), "");
}

}  // namespace
}  // namespace antisd::inline core
