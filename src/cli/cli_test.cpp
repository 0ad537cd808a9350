// The commands as a user runs them: the real binary, its exit status and both of its streams.
#include <algorithm>
#include <cstdlib>
#include <sstream>

#include <gmock/gmock.h>
#include <sys/wait.h>

#include "core/testing.h"
#include "io/atomic_file.h"
#include "io/json.h"

namespace antisd {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

struct Outcome {
  int status = -1;
  std::string out, err;
};

class Cli : public ::testing::Test {
 protected:
  // Runs `antisd arguments` through a shell, with `input` as standard input.
  Outcome run(const std::string& arguments, const std::string& input = "") {
    write_file_atomically(folder_ / "stdin", input);
    const auto file = [&](const char* name) { return "'" + (folder_ / name).string() + "'"; };
    const std::string command =
        fmt::format("'{}/antisd' {} <{} >{} 2>{}", ANTISD_BINARY_DIR, arguments, file("stdin"),
                    file("stdout"), file("stderr"));
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(folder_ / "stdout"),
            read_file(folder_ / "stderr")};
  }

  std::string write(const std::string& name, const std::string& text) {
    write_file_atomically(folder_ / name, text);
    return (folder_ / name).string();
  }

  // A model directory of our own: words separated by blanks, and a template in one line.
  std::string make_model() {
    const std::filesystem::path model = folder_ / "model";
    std::filesystem::create_directories(model);
    write_file_atomically(model / "tokenizer.json",
                          R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[
      {"id":4,"content":"<end>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],
      "normalizer":null,"pre_tokenizer":{"type":"WhitespaceSplit"},"post_processor":null,"decoder":null,
      "model":{"type":"WordLevel","vocab":{"<unk>":0,"one":1,"two":2,"three":3,"<end>":4},"unk_token":"<unk>"}})");
    write_file_atomically(model / "tokenizer_config.json",
                          R"({"eos_token":"<end>","unk_token":"<unk>"})");
    write_file_atomically(
        model / "chat_template.jinja",
        "{% for m in messages %}[{{ m.role }}] {{ m.content }}{{ eos_token }}\n{% endfor %}"
        "{% if tools is none %}no tools {% endif %}{{ style | default('plain') }}"
        "{% if add_generation_prompt %} >{% endif %}");
    return model.string();
  }

  testing::TemporaryFolder folder_;
};

TEST_F(Cli, TokenizesAndBack) {
  const std::string model = make_model();
  const Outcome there =
      run("tokenize " + model, "{\"id\":\"a\",\"text\":\"one three<end>\"}\n{\"text\":\"\"}\n");
  EXPECT_EQ(there.status, 0) << there.err;
  EXPECT_EQ(there.out, "{\"id\":\"a\",\"ids\":[1,3,4]}\n{\"ids\":[]}\n");
  const std::string rows = write("rows.jsonl", "{\"ids\":[1,3,4],\"id\":7}\n");
  EXPECT_EQ(run("detokenize " + model + " " + rows).out,
            "{\"id\":7,\"text\":\"one three <end>\"}\n");
  EXPECT_EQ(run("detokenize --skip-special-tokens " + model + " " + rows).out,
            "{\"id\":7,\"text\":\"one three\"}\n");
}

TEST_F(Cli, ABadRowStopsAfterTheRowsBeforeIt) {
  const std::string model = make_model();
  const std::string rows =
      write("rows.jsonl", "{\"text\":\"one\"}\n\n{\"txt\":\"two\"}\n{\"text\":\"three\"}\n");
  const Outcome stopped = run("tokenize " + model + " " + rows);
  EXPECT_EQ(stopped.status, 2);
  EXPECT_EQ(stopped.out, "{\"ids\":[1]}\n");
  EXPECT_EQ(stopped.err, "antisd: " + rows + ":3: the row has no 'text'; it has 'txt'\n");

  const Outcome went_on =
      run("tokenize --keep-going " + model,
          "{\"text\":\"one\"}\nnot json\n{\"id\":5,\"text\":3}\n{\"text\":\"two\"}\n");
  EXPECT_EQ(went_on.status, 0);
  EXPECT_THAT(went_on.out,
              StartsWith("{\"ids\":[1]}\n{\"error\":\"standard input:2: not valid JSON"));
  EXPECT_THAT(
      went_on.out,
      HasSubstr("{\"id\":5,\"error\":\"'text' is number; give a string\"}\n{\"ids\":[2]}\n"));
}

TEST_F(Cli, RendersWithTheModelsTemplateAndVariables) {
  const std::string model = make_model();
  const std::string row = R"({"id":1,"messages":[{"role":"user","content":"hi"}],"style":"bold"})";
  const Outcome rendered = run("render " + model, row + "\n");
  EXPECT_EQ(rendered.status, 0) << rendered.err;
  EXPECT_EQ(rendered.out, "{\"id\":1,\"text\":\"[user] hi<end>\\nno tools bold >\"}\n");

  const std::string other = write("other.jinja", "{{ messages | length }}{{ eos_token }}");
  const std::string rows = write("rows.jsonl", row);
  EXPECT_EQ(run("render --template " + other + " " + rows).out, "{\"id\":1,\"text\":\"1\"}\n");
  EXPECT_EQ(run("render " + model + " " + rows + " --template " + other).out,
            "{\"id\":1,\"text\":\"1<end>\"}\n");
  // Reasoning under any of its names, as transformers has it.
  const std::string thinking =
      write("thinking.jinja",
            "{% for m in messages %}{{ m.reasoning_content }}/{{ m.thinking }} {% endfor %}");
  EXPECT_EQ(
      run("render --template " + thinking,
          R"({"messages":[{"role":"a","reasoning":"x"},{"role":"a","thinking":"y"},{"role":"a","reasoning_content":"z","thinking":null}]})")
          .out,
      "{\"text\":\"x/x y/y z/None \"}\n");
  EXPECT_EQ(run("render").status, 2);
  EXPECT_THAT(run("render " + model, "{\"messages\":3}").err, HasSubstr("'messages' is number"));
}

TEST_F(Cli, PrintsAndResolvesTheConfiguration) {
  const Outcome defaults = run("config --defaults");
  EXPECT_EQ(defaults.status, 0);
  EXPECT_THAT(defaults.out, AllOf(HasSubstr("[rollout]"), HasSubstr("group_size = 8"),
                                  HasSubstr("[method.gate]")));
  const std::string file = write("run.toml", "[train]\nsteps = 7\n");
  EXPECT_THAT(run("config " + file + " train.seed=3").out,
              AllOf(HasSubstr("steps = 7"), HasSubstr("seed = 3")));
  // What it prints is a configuration file that resolves to itself.
  const std::string printed = write("printed.toml", run("config " + file).out);
  EXPECT_EQ(run("config " + printed).out, run("config " + file).out);

  const Outcome unknown = run("config " + file + " train.step=3");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean 'train.steps'?"));
  EXPECT_THAT(unknown.out, IsEmpty());
}

TEST_F(Cli, ShowsChecksAndConvertsData) {
  const std::string rows = write("rows.jsonl",
                                 "{\"id\":\"a\",\"problem\":\"1 + 1?\",\"answer\":2}\n"
                                 "{\"id\":\"b\",\"problem\":\"1  + 1?\",\"answer\":\"\"}\n");
  EXPECT_THAT(run("data show " + rows + " --limit 1").out,
              AllOf(HasSubstr("\"problem\":\"1 + 1?\""), HasSubstr("\"answer\":\"2\""),
                    Not(HasSubstr("\"b\""))));
  const Json report = Json::parse(run("data check --json " + rows).out);
  EXPECT_EQ(report["rows"], 2);
  const std::string parquet = (folder_ / "rows.parquet").string();
  EXPECT_EQ(
      run("data convert " + write("plain.jsonl", "{\"a\":1}\n{\"a\":2}\n") + " " + parquet).status,
      0);
  EXPECT_EQ(run("data convert " + parquet).out, "{\"a\":1}\n{\"a\":2}\n");
  const Outcome again = run("data convert " + rows + " " + parquet);
  EXPECT_EQ(again.status, 2);
  EXPECT_THAT(again.err, HasSubstr("there already"));
  EXPECT_EQ(run("data show no/such.jsonl").status, 2);
}

#ifdef ANTISD_TORCH
TEST_F(Cli, ScoresIds) {
  const std::string model = testing::fixture("model/llama_mha_tied").string();
  const Outcome scored =
      run("score " + model, R"({"id":"a","prompt_ids":[1,2,3],"response_ids":[4,5]})");
  ASSERT_EQ(scored.status, 0) << scored.err;
  const Json row = Json::parse(scored.out);
  EXPECT_EQ(row["id"], "a");
  EXPECT_EQ(row["logp"].size(), 2u);
  EXPECT_LT(row["logp"][0], 0.0);
  EXPECT_GT(row["entropy"][1], 0.0);
  const Outcome outside = run("score " + model, R"({"prompt_ids":[1],"response_ids":[4000]})");
  EXPECT_EQ(outside.status, 2);
  EXPECT_THAT(outside.err, HasSubstr("standard input:1: the response holds id 4000"));
  EXPECT_THAT(run("score " + model, R"({"prompt":"a","response":"b"})").err,
              HasSubstr("tokenizer"));
  EXPECT_EQ(run("score --device cuda:7 " + model).status, 2);
  EXPECT_EQ(run("score no/such/model").status, 2);
}

class CliScore : public Cli {
 protected:
  // Rows of unequal lengths, some with a common beginning.
  static std::string score_row(int i) {
    Json row = {{"id", i}, {"prompt_ids", Json::array()}, {"response_ids", Json::array()}};
    for (int t = 0; t < 18 + i % 5; ++t)
      row["prompt_ids"].push_back((i % 3 + 7 * t) % 40);
    for (int t = 0; t <= i % 9; ++t)
      row["response_ids"].push_back((i + 5 * t) % 40);
    return to_json_line(row) + "\n";
  }

  const std::string model_ = testing::fixture("model/llama_mha_tied").string();
};

std::vector<Json> rows_of(const std::string& text) {
  std::vector<Json> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    rows.push_back(Json::parse(line));
  return rows;
}

TEST_F(CliScore, RowsInABatchGetTheScoresTheyGetAlone) {
  std::string rows;
  for (int i = 0; i < 60; ++i)
    rows += score_row(i);
  const auto alone = rows_of(run("score --threads 1 --batch-tokens 1 " + model_, rows).out);
  const std::string file = write("rows.jsonl", rows);
  for (const char* tokens : {"200", "1000000"}) {
    const auto together = rows_of(
        run(fmt::format("score --threads 1 --batch-tokens {} {} {}", tokens, model_, file)).out);
    ASSERT_EQ(together.size(), 60u);
    ASSERT_EQ(alone.size(), 60u);
    for (std::size_t i = 0; i < together.size(); ++i) {
      EXPECT_EQ(together[i]["id"], i);
      ASSERT_EQ(together[i]["logp"].size(), i % 9 + 1);
      for (const char* field : {"logp", "entropy"}) {
        for (std::size_t t = 0; t < together[i][field].size(); ++t) {
          EXPECT_NEAR(together[i][field][t].get<double>(), alone[i][field][t].get<double>(), 1e-5);
        }
      }
    }
  }
}

TEST_F(CliScore, ABadRowInTheMiddleOfABatch) {
  std::string rows;
  for (int i = 0; i < 5; ++i)
    rows += score_row(i);
  const std::string no_ids = "{\"id\":\"x\",\"prompt_ids\":[1]}\n",
                    outside = "{\"prompt_ids\":[1],\"response_ids\":[4000]}\n",
                    empty = "{\"prompt_ids\":[1],\"response_ids\":[]}\n";
  const std::string long_row = to_json_line(
      {{"prompt_ids", std::vector<int>(5000, 1)}, {"response_ids", std::vector<int>{1}}});
  const Outcome stopped = run("score --threads 1 " + model_, rows + outside + rows);
  EXPECT_EQ(stopped.status, 2);
  EXPECT_EQ(rows_of(stopped.out).size(), 5u);
  EXPECT_THAT(stopped.err, StartsWith("antisd: standard input:6: the response holds id 4000"));
  EXPECT_THAT(run("score --threads 1 " + model_, rows + "no json\n").err,
              StartsWith("antisd: standard input:6: not valid JSON"));
  EXPECT_THAT(run("score --threads 1 " + model_, rows + empty).err,
              StartsWith("antisd: standard input:6: the response is empty; give at least one"));
  EXPECT_THAT(run("score --threads 1 " + model_, rows + long_row).err,
              AllOf(StartsWith("antisd: standard input:6: prompt and response have 5001 tokens"),
                    HasSubstr("max_position_embeddings"), HasSubstr("shorten")));

  const Outcome all = run("score --threads 1 --keep-going " + model_,
                          no_ids + rows + outside + "[1]\n" + rows + empty);
  EXPECT_EQ(all.status, 0);
  const std::vector<Json> out = rows_of(all.out);
  ASSERT_EQ(out.size(), 14u);
  EXPECT_EQ(out[0], Json({{"id", "x"},
                          {"error",
                           "the row has no 'response_ids'; it has 'id', "
                           "'prompt_ids'"}}));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(out[static_cast<std::size_t>(1 + i)]["id"], i);
    EXPECT_EQ(out[static_cast<std::size_t>(8 + i)]["logp"].size(), static_cast<std::size_t>(i + 1));
  }
  EXPECT_THAT(out[6]["error"].get<std::string>(), StartsWith("the response holds id 4000"));
  EXPECT_THAT(out[7]["error"].get<std::string>(), StartsWith("standard input:8: "));
  EXPECT_THAT(out[13]["error"].get<std::string>(), StartsWith("the response is empty"));
}

// Whoever waits for an answer before writing the next row gets it.
TEST_F(CliScore, APipeThatPausesIsAnswered) {
  const std::string command = fmt::format(
      "cd '{}' && mkfifo pipe && ('{}/antisd' score --threads 1 {} <pipe >answers &) && exec "
      "3>pipe && "
      "cat first >&3 && for i in $(seq 600); do [ -s answers ] && break; sleep 0.1; done; "
      "wc -l <answers >seen; exec 3>&-",
      folder_.path().string(), ANTISD_BINARY_DIR, model_);
  write("first", score_row(1));
  write("answers", "");
  ASSERT_EQ(std::system(("bash " + write("script", command)).c_str()), 0);
  EXPECT_EQ(std::stoi(read_file(folder_ / "seen")), 1);
}

TEST_F(CliScore, ModelsThatDoNotFitIntoMemorySayWhatToDo) {
  Json config = Json::parse(read_file(testing::fixture("model/llama_mha_tied/config.json")));
  config["vocab_size"] = 1 << 26;
  config["hidden_size"] = 4096;  // an embedding of 1 TiB
  const std::filesystem::path large = folder_ / "large";
  std::filesystem::create_directories(large);
  write_file_atomically(large / "config.json", config.dump());
  const std::string command =
      fmt::format("ulimit -v 64000000; '{}/antisd' score {} </dev/null 2>'{}'", ANTISD_BINARY_DIR,
                  large.string(), (folder_ / "stderr").string());
  const int status = std::system(command.c_str());
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_THAT(
      read_file(folder_ / "stderr"),
      AllOf(StartsWith("antisd: out of memory: 1024.00 GiB were asked for, "),
            HasSubstr("GiB are free; put fewer tokens into a batch"), EndsWith("more memory\n")));
}

TEST_F(CliScore, WeightsWithNanAreRefusedWhenAsked) {
  const std::filesystem::path model = folder_ / "model";
  std::filesystem::copy(model_, model);
  std::string bytes = read_file(model / "model.safetensors");
  std::fill(bytes.end() - 8, bytes.end(), '\xff');  // NaN in every precision
  write_file_atomically(model / "model.safetensors", bytes);
  const Outcome refused = run("score --threads 1 --check-weights " + model.string(), score_row(1));
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("the tensor model."), HasSubstr("holds NaN or infinity"),
                                 HasSubstr("fetch the weights again")));
}

// A small random model of 48 words with room for long sequences.
std::string make_generator(const std::filesystem::path& folder) {
  const std::filesystem::path model = folder / "generator";
  std::filesystem::create_directories(model);
  const std::filesystem::path origin = testing::fixture("model/llama_mha_tied");
  std::filesystem::copy(origin / "model.safetensors", model);
  Json config = Json::parse(read_file(origin / "config.json"));
  config["max_position_embeddings"] = 200'000;
  write_file_atomically(model / "config.json", config.dump());
  write_file_atomically(model / "generation_config.json", R"({"eos_token_id":[3]})");
  Json vocabulary;
  for (int i = 0; i < 46; ++i)  // two ids fewer than the model has rows
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

TEST_F(Cli, GeneratesFromIdsWithoutATokenizer) {
  const std::string model = testing::fixture("model/llama_mha_tied").string();
  const std::string prompts = write("prompts.jsonl",
                                    "{\"id\":\"a\",\"prompt_ids\":[1,2,3]}\n"
                                    "{\"prompt_ids\":[7]}\n");
  const Outcome out = run("generate --max-tokens 9 --ignore-eos --seed 5 " + model + " " + prompts);
  ASSERT_EQ(out.status, 0) << out.err;
  EXPECT_THAT(out.err, IsEmpty());
  std::istringstream lines(out.out);
  std::string line;
  std::getline(lines, line);
  const Json first = Json::parse(line);
  EXPECT_EQ(first["id"], "a");
  EXPECT_FALSE(first.contains("text"));
  EXPECT_EQ(first["ids"].size(), 9u);
  EXPECT_EQ(first["finish_reason"], "length");
  // The log-probabilities are those of `score`.
  const Json request = {{"prompt_ids", {1, 2, 3}}, {"response_ids", first["ids"]}};
  const Json scored = Json::parse(run("score " + model, request.dump()).out);
  for (int i = 0; i < 9; ++i)
    EXPECT_NEAR(first["logp"][i].get<double>(), scored["logp"][i].get<double>(), 1e-4);
  // Rows come out the same whatever their batch; the noise is keyed by the row.
  const auto ids_of_rows = [&](const std::string& rows) {
    std::vector<Json> ids;
    std::istringstream all(rows);
    for (std::string row; std::getline(all, row);)
      ids.push_back(Json::parse(row)["ids"]);
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

TEST_F(Cli, GeneratesText) {
  const std::string model = make_generator(folder_.path());
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
  for (const Json& sample : Json::parse(run(until_end, "{\"prompt\":\"w1\"}").out)["samples"]) {
    EXPECT_EQ(sample["finish_reason"], "stop");
    EXPECT_EQ(sample["ids"].back(), 3);
  }
}

TEST_F(Cli, GenerateRefusesAndGoesOn) {
  const std::string model = testing::fixture("model/llama_mha_tied").string();
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

// The first row ends at the stop string; the second never does and is interrupted.
TEST_F(Cli, AnInterruptedGenerationGivesWhatIsFinished) {
  const std::string model = make_generator(folder_.path());
  const std::string flags = " --temperature 0 --ignore-eos " + model;
  std::string prompts;
  for (int prompt = 0; prompt < 10; ++prompt)
    prompts += fmt::format("{{\"prompt_ids\":[{}]}}\n", prompt);
  std::vector<std::vector<int>> responses;
  std::istringstream lines(run("generate --max-tokens 200" + flags, prompts).out);
  for (std::string line; std::getline(lines, line);)
    responses.push_back(Json::parse(line)["ids"].get<std::vector<int>>());
  // A prompt that meets a token which another never meets.
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
  const std::string rows = write("endless.jsonl", fmt::format("{{\"prompt_ids\":[{}]}}\n"
                                                              "{{\"prompt_ids\":[{}]}}\n",
                                                              first, other));
  const std::string command = fmt::format(
      "timeout --preserve-status -s INT 5 '{}/antisd' generate --max-tokens 190000 "
      "--stop w{} {} {} > '{}'",
      ANTISD_BINARY_DIR, stop, flags, rows, (folder_ / "partial").string());
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 130);
  const std::string out = read_file(folder_ / "partial");
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 1);
  EXPECT_EQ(Json::parse(out)["finish_reason"], "stop");
}
#endif

TEST_F(Cli, GradesAnswersProgramsAndSearches) {
  const Outcome math = run("grade math",
                           "{\"id\":1,\"answer\":0.5,\"response\":\"so \\\\boxed{\\\\frac12}\"}\n"
                           "{\"answer\":\"7\",\"response\":\"no idea\"}\n");
  EXPECT_EQ(math.status, 0) << math.err;
  EXPECT_THAT(math.out, StartsWith("{\"id\":1,\"correct\":true,\"extracted\":\"\\\\frac12\""));
  EXPECT_THAT(math.out, HasSubstr("{\"correct\":false,\"extracted\":\"\""));
  EXPECT_THAT(run("grade math --raw", R"({"answer":"2\\sqrt{2}","response":"$\\sqrt 8$"})").out,
              HasSubstr("\"correct\":true"));

  const Json program = {
      {"response", "```python\ndef f(x): return x * x\n```"},
      {"tests", {{"kind", "asserts"}, {"code", "assert f(2) == 4\nassert f(3) == 8"}}}};
  const Outcome code = run("grade code", to_json_line(program));
  ASSERT_EQ(code.status, 0) << code.err;
  const Json verdict = Json::parse(code.out);
  EXPECT_EQ(verdict["correct"], false);
  EXPECT_EQ(verdict["passed"], 1);
  EXPECT_EQ(verdict["total"], 2);

  EXPECT_THAT(
      run("grade countdown",
          R"({"problem":"Numbers 2 3 4 target 20","response":"Let 2 + 3 = 5 ; 5 * 4 = 20 holds So boxed 20"})")
          .out,
      HasSubstr("\"correct\":true"));
  // Rows are graded several at a time and come out in order; a bad one stops the rest.
  std::string rows;
  for (int i = 0; i < 200; ++i)
    rows += fmt::format("{{\"id\":{},\"answer\":{},\"response\":\"\\\\boxed{{100}}\"}}\n", i, i);
  const Outcome many = run("grade math --threads 4", rows + "{\"answer\":1}\n" + rows);
  EXPECT_EQ(many.status, 2);
  EXPECT_THAT(many.err, HasSubstr("standard input:201: the row has no 'response'"));
  std::istringstream lines(many.out);
  int number = 0;
  for (std::string line; std::getline(lines, line); ++number) {
    const Json row = Json::parse(line);
    EXPECT_EQ(row["id"], number);
    EXPECT_EQ(row["correct"], number == 100);
  }
  EXPECT_EQ(number, 200);
}

TEST_F(Cli, SaysWhatItIs) {
  EXPECT_THAT(run("version").out, AllOf(StartsWith("antisd "), HasSubstr("revision: ")));
  const Outcome doctor = run("doctor");
  EXPECT_EQ(doctor.status, 0);
  EXPECT_THAT(doctor.out, AllOf(HasSubstr("cpu "), HasSubstr("sandbox "), HasSubstr("mpi ")));
}

TEST_F(Cli, HelpAndBadUsage) {
  EXPECT_THAT(run("--help").out, HasSubstr("tokenize"));
  EXPECT_THAT(run("tokenize --help").out,
              AllOf(HasSubstr("--add-special-tokens"), HasSubstr("--keep-going")));
  const Outcome unknown = run("tokenise");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_EQ(unknown.err, "antisd: unknown command 'tokenise'; did you mean 'tokenize'?\n");
  EXPECT_EQ(run("").status, 2);
  EXPECT_EQ(run("tokenize").status, 2);
  EXPECT_EQ(run("tokenize --no-such-flag x").status, 2);
  EXPECT_EQ(run("tokenize no/such/model").status, 2);
}

TEST_F(Cli, AFullDiskIsAnError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "needs /dev/full";
  const std::string command =
      fmt::format("'{}/antisd' config --defaults >/dev/full 2>/dev/null", ANTISD_BINARY_DIR);
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

}  // namespace
}  // namespace antisd
