// `generate` as a user runs it: ids, text, stop strings, errors, an interrupt.

#include <algorithm>

#include "cli/command_testing.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Outcome;
using testing::parse_rows;

class Generate : public testing::CommandTest {
 protected:
  // A small random model of 48 words with room for long sequences.
  std::string make_generator() const {
    const fs::path model = folder_ / "generator";
    fs::create_directories(model);
    const fs::path origin = testing::fixture("model/llama_mha_tied");
    fs::copy(origin / "model.safetensors", model);
    Json config = Json::parse(read_file(origin / "config.json"));
    config["max_position_embeddings"] = 200'000;
    write_file_atomically(model / "config.json", config.dump());
    write_file_atomically(model / "generation_config.json", R"({"eos_token_id":[3]})");
    Json vocabulary;
    for (int i = 0; i < 46; ++i)  // two fewer than the model's vocabulary
      vocabulary[fmt::format("w{}", i)] = i;
    const Json tokenizer = {
        {"version", "1.0"},
        {"truncation", nullptr},
        {"padding", nullptr},
        {"added_tokens", Json::array()},
        {"normalizer", nullptr},
        {"pre_tokenizer", {{"type", "WhitespaceSplit"}}},
        {"post_processor", nullptr},
        {"decoder", nullptr},
        {"model", {{"type", "WordLevel"}, {"vocab", vocabulary}, {"unk_token", "w0"}}}};
    write_file_atomically(model / "tokenizer.json", tokenizer.dump());
    write_file_atomically(model / "chat_template.jinja",
                          "{% for m in messages %}{{ m.content }} {% endfor %}w9");
    return model.string();
  }

  const std::string fixture_ = testing::fixture("model/llama_mha_tied").string();
};

TEST_F(Generate, FromIdsWithoutATokenizer) {
  const std::string& model = fixture_;
  const std::string prompts = write("prompts.jsonl",
                                    "{\"id\":\"a\",\"prompt_ids\":[1,2,3]}\n"
                                    "{\"prompt_ids\":[7]}\n");
  const Outcome out = run("generate --max-tokens 9 --ignore-eos --seed 5 " + model + " " + prompts);
  ASSERT_EQ(out.status, 0) << out.err;
  EXPECT_THAT(out.err, IsEmpty());
  const Json first = parse_rows(out.out).front();
  EXPECT_EQ(first["id"], "a");
  EXPECT_FALSE(first.contains("text"));
  EXPECT_EQ(first["ids"].size(), 9u);
  EXPECT_EQ(first["finish_reason"], "length");
  // The log-probabilities are those of `score`.
  const Json request = {{"prompt_ids", {1, 2, 3}}, {"response_ids", first["ids"]}};
  const Json scored = Json::parse(run("score " + model, request.dump()).out);
  for (int i = 0; i < 9; ++i)
    EXPECT_NEAR(first["logp"][i].get<double>(), scored["logp"][i].get<double>(), 1e-4);
  // A row's result does not depend on its batch; the random numbers are keyed by the row.
  const auto ids_of_rows = [&](const std::string& rows) {
    std::vector<Json> ids;
    for (const Json& row : parse_rows(rows))
      ids.push_back(row["ids"]);
    return ids;
  };
  const Outcome one_by_one =
      run("generate --max-sequences 1 --max-tokens 9 --ignore-eos --seed 5 " + model,
          read_file(prompts));
  EXPECT_EQ(ids_of_rows(one_by_one.out), ids_of_rows(out.out));
  const Outcome reseeded =
      run("generate --max-tokens 9 --ignore-eos --seed 6 " + model + " " + prompts);
  EXPECT_NE(ids_of_rows(reseeded.out), ids_of_rows(out.out));
  const Json several =
      Json::parse(run("generate --n 3 --max-tokens 4 " + model, "{\"prompt_ids\":[1]}").out);
  EXPECT_EQ(several["samples"].size(), 3u);
  EXPECT_NE(several["samples"][0], several["samples"][1]);
  EXPECT_THAT(run("generate " + model, "{\"prompt\":\"a\"}").err, HasSubstr("tokenizer"));
}

TEST_F(Generate, Text) {
  const std::string model = make_generator();
  const std::string greedy = "generate --temperature 0 --max-tokens 12 --ignore-eos " + model;
  const Json row = Json::parse(run(greedy, "{\"prompt\":\"w5 w6 w9\"}").out);
  EXPECT_EQ(Json::parse(run(greedy, "{\"prompt_ids\":[5,6,9]}").out), row);
  EXPECT_EQ(Json::parse(run(greedy, R"({"messages":[{"role":"user","content":"w5 w6"}]})").out),
            row);
  std::string text;
  for (const Json& id : row["ids"])
    if (id < 46) text += fmt::format("{}w{}", text.empty() ? "" : " ", id.get<int>());
  EXPECT_EQ(row["text"], text);
  EXPECT_EQ(run(greedy + " --prompt 'w5 w6 w9'").out, text + "\n");
  // A stop string ends the response and is not part of its text.
  const std::string stop = fmt::format("w{}", row["ids"][4].get<int>());
  const Json stopped =
      Json::parse(run(greedy + " --stop " + stop, "{\"prompt\":\"w5 w6 w9\"}").out);
  EXPECT_EQ(stopped["finish_reason"], "stop");
  EXPECT_LE(stopped["ids"].size(), 5u);
  EXPECT_EQ(stopped["text"], text.substr(0, text.find(stop)));
  // The end-of-sequence id of generation_config.json.
  const std::string until_end = "generate --n 40 --max-tokens 5000 " + model;
  const Json ended = Json::parse(run(until_end, "{\"prompt\":\"w1\"}").out);
  ASSERT_EQ(ended["samples"].size(), 40u);
  for (const Json& sample : ended["samples"]) {
    EXPECT_EQ(sample["finish_reason"], "stop");
    EXPECT_EQ(sample["ids"].back(), 3);
  }
}

TEST_F(Generate, RefusesAndGoesOn) {
  const std::string& model = fixture_;
  const std::string rows = "{\"prompt_ids\":[1]}\n{\"prompt_ids\":[]}\n{\"prompt_ids\":[2]}\n";
  const Outcome stopped = run("generate --max-tokens 2 " + model, rows);
  EXPECT_EQ(stopped.status, 2);
  EXPECT_EQ(std::count(stopped.out.begin(), stopped.out.end(), '\n'), 1);
  EXPECT_THAT(stopped.err, HasSubstr("standard input:2: the prompt is empty"));
  const Outcome went_on = run("generate --keep-going --max-tokens 2 " + model, rows);
  EXPECT_EQ(went_on.status, 0);
  EXPECT_EQ(std::count(went_on.out.begin(), went_on.out.end(), '\n'), 3);
  EXPECT_THAT(went_on.out, HasSubstr("\n{\"error\":\"the prompt is empty"));
  const auto refused = [&](const std::string& flags, const std::string& input) {
    const Outcome outcome = run("generate " + flags + " " + model, input);
    EXPECT_EQ(outcome.status, 2) << flags;
    return outcome.err;
  };
  const std::string row = "{\"prompt_ids\":[1]}";
  EXPECT_THAT(refused("", ""), HasSubstr("there are no prompts"));
  EXPECT_THAT(refused("--n 0", row), HasSubstr("--n"));
  EXPECT_THAT(refused("--top-p 0", row), HasSubstr("top-p is 0"));
  EXPECT_THAT(refused("--top-p 1.5", row), HasSubstr("top-p is 1.5"));
  EXPECT_THAT(refused("--temperature -1", row), HasSubstr("the temperature is -1"));
  EXPECT_THAT(refused("--stop ''", row), HasSubstr("a stop string is empty"));
  EXPECT_THAT(refused("", "{\"x\":1}"), HasSubstr("give 'prompt', 'messages' or 'prompt_ids'"));
  Json ids = Json::array();
  for (int i = 0; i < 32; ++i)
    ids.push_back(1);
  EXPECT_THAT(refused("", Json{{"prompt_ids", ids}}.dump()), HasSubstr("no room for one more"));
}

// Rows that come together are answered while standard input stays open: a program that asks and
// waits for the answers would otherwise wait for ever.
TEST_F(Generate, AnswersAllRowsThatCameTogether) {
  write("rows", "{\"prompt_ids\":[1]}\n{\"prompt_ids\":[2]}\n{\"prompt_ids\":[3]}\n");
  ASSERT_EQ(shell("mkfifo pipe; antisd generate --max-tokens 2 " + fixture_ +
                  " <pipe >answers 2>said & exec 3>pipe; cat rows >&3; "
                  "for i in $(seq 300); do [ $(wc -l <answers) -ge 3 ] && break; sleep 0.1; done; "
                  "wc -l <answers >count; exec 3>&-; wait"),
            0)
      << read_file(folder_ / "said");
  EXPECT_THAT(read_file(folder_ / "count"), HasSubstr("3"));
}

// The first row ends at the stop string; the second does not end and is interrupted.
TEST_F(Generate, AnInterruptGivesWhatIsFinished) {
  const std::string model = make_generator();
  const std::string flags = " --temperature 0 --ignore-eos " + model;
  std::string prompts;
  for (int prompt = 0; prompt < 10; ++prompt)
    prompts += fmt::format("{{\"prompt_ids\":[{}]}}\n", prompt);
  std::vector<std::vector<int>> responses;
  for (const Json& row : parse_rows(run("generate --max-tokens 200" + flags, prompts).out))
    responses.push_back(row["ids"].get<std::vector<int>>());
  // Finds a prompt that samples a token which another prompt never samples.
  int first = -1, other = -1, stop = -1;
  for (int a = 0; a < 10; ++a) {
    for (int b = 0; b < 10; ++b) {
      for (const int id : responses[a]) {
        if (id > 9 && id < 46 && std::count(responses[b].begin(), responses[b].end(), id) == 0)
          first = a, other = b, stop = id;
      }
    }
  }
  ASSERT_GE(stop, 0);
  write("endless.jsonl",
        fmt::format("{{\"prompt_ids\":[{}]}}\n{{\"prompt_ids\":[{}]}}\n", first, other));
  const int status =
      shell(fmt::format("timeout --preserve-status -s INT 5 antisd generate --max-tokens 190000 "
                        "--stop w{} {} endless.jsonl >partial",
                        stop, flags));
  EXPECT_EQ(status, 130);
  const std::string out = read_file(folder_ / "partial");
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 1);
  EXPECT_EQ(Json::parse(out)["finish_reason"], "stop");
}

TEST_F(Generate, RanksGiveTheRowsOfOneProcess) {
  const std::string model = make_generator();
  std::string rows;
  for (int i = 0; i < 9; ++i)
    rows += fmt::format(R"({{"id":{},"prompt":"w{} w7"}})", i, i + 1) + "\n";
  const std::string arguments = "generate " + model + " --n 2 --max-tokens 8 --quiet";
  const Outcome one = run(arguments, rows), three = run(arguments + " --processes 3", rows);
  ASSERT_EQ(three.status, 0) << three.err;
  EXPECT_EQ(three.out, one.out);
  EXPECT_EQ(parse_rows(three.out).size(), 9u);
}

}  // namespace
}  // namespace antisd::inline cli
