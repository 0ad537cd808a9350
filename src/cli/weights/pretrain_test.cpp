// `pretrain` as a user runs it: a small model of the built-in task, text, chats, resuming,
// mistakes.

#include "cli/command_testing.h"
#include "data/countdown.h"
#include "io/jsonl.h"
#include "reward/countdown_grader.h"
#include "run/metrics/testing.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Outcome;

class Pretrain : public testing::CommandTest {
 protected:
  Outcome pretrain(const std::string& run_folder, const std::string& more) const {
    return run(
        fmt::format("pretrain record.dir='{}' --threads 1 --device cpu {}", run_folder, more));
  }

  std::vector<Json> metrics(const std::string& run) const {
    std::vector<Json> rows;
    JsonlReader reader(folder_ / run / "metrics.jsonl");
    for (Json row; reader.next(row);)
      rows.push_back(row);
    return rows;
  }

  // A new model of the task, small enough for a test.
  static constexpr const char* kSmall =
      "pretrain.source=countdown:3 pretrain.new_model.hidden=32 pretrain.new_model.layers=1 "
      "pretrain.new_model.heads=2 pretrain.new_model.head_dim=16 "
      "pretrain.new_model.intermediate=64 pretrain.new_model.positions=256 "
      "pretrain.documents_per_step=16 pretrain.sequence_tokens=256 pretrain.eval_documents=8 "
      "pretrain.samples=4 optim.lr=0.01 optim.schedule=cosine optim.warmup_steps=2 ";
};

TEST_F(Pretrain, LearnsTheTaskAndGoesOnByteForByte) {
  const std::string settings = std::string(kSmall) +
                               "train.steps=12 checkpoint.every=6 checkpoint.keep=3 "
                               "pretrain.eval_every=6 train.micro_batch_tokens=400";
  const Outcome whole = pretrain("run", settings);
  ASSERT_EQ(whole.status, 0) << whole.err;
  const std::vector<Json> rows = metrics("run");
  ASSERT_EQ(rows.size(), 12u);
  EXPECT_NEAR(rows.front()["train/loss"], std::log(448), 0.3);  // over the whole vocabulary
  EXPECT_LT(rows.back()["train/loss"], 0.7 * rows.front()["train/loss"].get<double>());
  EXPECT_LT(rows.back()["val/loss"], rows[5]["val/loss"]);
  EXPECT_GT(rows.back()["perf/throughput"], 0);
  EXPECT_TRUE(rows.back().contains("val-core/countdown-3/acc/mean@1"));

  fs::copy(folder_ / "run", folder_ / "again", fs::copy_options::recursive);
  fs::remove_all(folder_ / "again" / "checkpoints" / "step-000012");
  const Outcome resumed = pretrain("again", settings + " --resume");
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("going on from"));
  for (const char* file : {"model/model.safetensors", "optimizer.safetensors", "state.json"}) {
    const fs::path at = fs::path("checkpoints") / "step-000012" / file;
    EXPECT_TRUE(read_file(folder_ / "run" / at) == read_file(folder_ / "again" / at)) << file;
  }
  EXPECT_EQ(metrics("again").size(), 12u);
  // Other documents make it another run.
  EXPECT_THAT(pretrain("again", settings + " --resume pretrain.mix.hint=0.5 train.steps=13").err,
              HasSubstr("other documents"));
  EXPECT_THAT(pretrain("again", settings).err, HasSubstr("already holds a run"));

  // The other commands can read the directory.
  const std::string model = path("run/checkpoints/step-000012/model");
  const Outcome rendered =
      run(fmt::format("generate '{}' --prompt 'Numbers 4 11 3 target 29 |' --max-tokens 5 "
                      "--device cpu --threads 1",
                      model));
  EXPECT_EQ(rendered.status, 0) << rendered.err;
  for (const char* file : {"config.json", "generation_config.json", "tokenizer.json",
                           "tokenizer_config.json", "chat_template.jinja"})
    EXPECT_TRUE(fs::exists(fs::path(model) / file)) << file;

  // Given weights, and text and chats of the task's words: supervised fine-tuning.
  write("a.txt", "Let 4 + 11 = 15 no Wait");
  const Outcome text = pretrain(
      "text", fmt::format("model.path='{}' pretrain.source='{}' pretrain.documents_per_step=2 "
                          "pretrain.sequence_tokens=4 train.steps=2 pretrain.held_out='{}'",
                          model, path("a.txt"), path("a.txt")));
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.err, HasSubstr("1 documents of text in 2 pieces"));
  write(
      "chat.jsonl",
      R"({"messages":[{"role":"user","content":"Solve |"},{"role":"assistant","content":"So boxed 29"}]})"
      "\n");
  const Outcome chat = pretrain(
      "chat", fmt::format("model.path='{}' pretrain.source='{}' pretrain.documents_per_step=2 "
                          "pretrain.sequence_tokens=64 train.steps=1",
                          model, path("chat.jsonl")));
  EXPECT_EQ(chat.status, 0) << chat.err;
  // Two documents of a user's two tokens and the assistant's three with [EOS].
  EXPECT_EQ(metrics("chat").front()["perf/total_num_tokens"], 12);
  EXPECT_EQ(metrics("chat").front()["perf/loss_tokens"], 8);
  // The loss is the mean that `score` finds, before any update.
  write("score.jsonl", R"({"prompt":"Solve |","response":"So boxed 29 [EOS]"})"
                       "\n");
  const Outcome scored =
      run(fmt::format("score '{}' '{}' --device cpu --threads 1", model, path("score.jsonl")));
  ASSERT_EQ(scored.status, 0) << scored.err;
  double sum = 0;
  const Json logp = Json::parse(scored.out)["logp"];
  ASSERT_EQ(logp.size(), 4u);
  for (const Json& value : logp)
    sum -= value.get<double>();
  EXPECT_NEAR(metrics("chat").front()["train/loss"], sum / 4, 1e-5);
}

TEST_F(Pretrain, WeightsThatExplodeCostNoGoodCheckpoint) {
  const std::string settings = std::string(kSmall) + "checkpoint.every=1 checkpoint.keep=1 ";
  ASSERT_EQ(pretrain("run", settings + "train.steps=3").status, 0);
  const Outcome exploded = pretrain("run", settings + "--resume train.steps=9 optim.lr=1e30");
  EXPECT_EQ(exploded.status, 1) << exploded.err;
  EXPECT_THAT(exploded.err, AllOf(HasSubstr("not finite"), HasSubstr("learning rate "),
                                  HasSubstr("last good checkpoint is run/checkpoints/step-000003"),
                                  HasSubstr("remove run/checkpoints/step-000004")));
  EXPECT_TRUE(fs::exists(folder_ / "run/checkpoints/step-000003"));
  EXPECT_FALSE(fs::exists(folder_ / "run/checkpoints/step-000005"));
  // The message's remedy works.
  fs::remove_all(folder_ / "run/checkpoints/step-000004");
  EXPECT_EQ(pretrain("run", settings + "--resume train.steps=5").status, 0);
}

TEST_F(Pretrain, MistakesAreOneMessage) {
  write("empty.txt", " \n");
  write("user.jsonl", R"({"messages":[{"role":"user","content":"Solve"}]})"
                      "\n");
  write("odd.jsonl", "{\"problem\":\"x\"}\n");
  const std::string task = kSmall;
  int run = 0;
  const auto refused = [&](const std::string& settings, const char* message) {
    const Outcome outcome = pretrain(fmt::format("run-{}", ++run), settings);
    EXPECT_EQ(outcome.status, 2) << settings;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << settings;
  };
  refused("pretrain.source=countdown:3", "neither a model nor the shape of a new one");
  refused(task + "pretrain.source=countup:3 model.path=nowhere", "nowhere");
  refused(task + "pretrain.source=a.txt", "a new model for text needs a tokenizer");
  refused(task + "pretrain.source=countdown:5", "is not part of a countdown source");
  refused(task + "pretrain.source=countdown:3:held-out", "held-out problems are not for training");
  refused(task + "pretrain.source=countdown:3,a.txt", "cannot be mixed");
  refused(task + "pretrain.new_model.vocabulary=100", "too few for the tokenizer's 423 tokens");
  refused(task + "pretrain.new_model.kv_heads=3", "cannot share");
  refused(task + "pretrain.sequence_tokens=512", "more than the model's 256 positions");
  refused(task + "train.init_from=elsewhere", "pretrain starts from weights");

  // A directory with the task's tokenizer, left by a run of no steps.
  ASSERT_EQ(pretrain("none", task + "train.steps=0").status, 0);
  const std::string words =
      fmt::format("model.path='{}' pretrain.new_model.hidden=32 ", path("none/new_model"));
  refused(words + "pretrain.source=empty.file", "neither a task nor a file of documents");
  refused(words + "pretrain.source=empty.txt", "the document is empty");
  refused(words + "pretrain.source=gone.txt", "gone.txt");
  refused(words + "pretrain.source=user.jsonl", "user.jsonl:1");
  refused(words + "pretrain.source=user.jsonl", "no assistant turn");
  refused(words + "pretrain.source=odd.jsonl", "neither \"messages\" nor");
  refused(words + "pretrain.source=", "no documents are named");
}

// Here because the grader is in a higher layer than the task.
TEST(CountdownTask, EverySolutionGradesCorrect) {
  int wrong_documents = 0;
  for (const char* spec : {"countdown:3+4:9000:seed=4", "countdown:3+4:held-out:1000:seed=5"}) {
    for (const Json& row : countdown_rows(CountdownSource::parse(spec))) {
      const CountdownProblem problem = read_countdown_problem(row["problem"]);
      const std::string solution = row["solution"];
      ASSERT_EQ(grade_countdown(problem, solution).reward, 1.0)
          << row["problem"] << " " << solution;
    }
  }
  // The grader agrees with how documents end.
  const CountdownSource source = CountdownSource::parse("countdown:3+4");
  for (std::uint32_t i = 0; i < 5'000; ++i) {
    const CountdownDocument document = countdown_document(source, {}, 1, i);
    const std::string_view response = document.response;
    const std::size_t last = response.rfind("Let ");
    const bool holds = response.substr(last).find(" holds ") != std::string_view::npos;
    const Verdict grade = grade_countdown(parse_countdown_problem(document.prompt), response);
    EXPECT_EQ(grade.correct(), holds) << response;
    wrong_documents += !holds;
  }
  EXPECT_GT(wrong_documents, 1'000);
}

TEST_F(Pretrain, RanksGiveTheFilesOfOneProcess) {
  const std::string settings = std::string(kSmall) +
                               "train.steps=4 checkpoint.every=2 pretrain.eval_every=2 "
                               "train.micro_batches=3 ";
  ASSERT_EQ(pretrain("one", settings).status, 0);
  const Outcome three = pretrain("three", settings + "--processes 3 dist.shard=optimizer");
  ASSERT_EQ(three.status, 0) << three.err;
  for (const char* file : {"model/model.safetensors", "optimizer.safetensors", "state.json"}) {
    const fs::path path = fs::path("checkpoints/step-000004") / file;
    EXPECT_TRUE(read_file(folder_ / "three" / path) == read_file(folder_ / "one" / path)) << file;
  }
  const std::vector<Json> rows = metrics("three"), expected = metrics("one");
  ASSERT_EQ(rows.size(), expected.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const auto& [name, value] : expected[i].items()) {
      if (!testing::is_time_metric(name)) {
        EXPECT_EQ(rows[i][name], value) << name;
      }
    }
  }
}

}  // namespace
}  // namespace antisd::inline cli
