// A teacher that is another model: scores, divergences, rest, checkpoints.
#include "trainer/other_teacher.h"

#include <ATen/ATen.h>

#include "inference/scorer.h"
#include "trainer/ranks_testing.h"

namespace antisd::inline trainer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::make_other_teacher;
using testing::SmallTraining;
using testing::train_alone;
using testing::train_on;
using testing::weight_bytes;

const std::vector<std::string> kOpd = {"method.name=opd", "method.teacher.path=teacher",
                                       "train.steps=3"};

std::vector<std::string> opd(const std::vector<std::string>& more) {
  std::vector<std::string> settings = kOpd;
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

TEST(OtherTeacher, RestsOnTheHostAndComesBackUnchanged) {
  const testing::TemporaryFolder folder;
  make_other_teacher(folder / "teacher");
  const auto load = [&] { return load_model(folder / "teacher", at::kCPU, at::kFloat); };
  const CausalLm plain = load();
  const std::vector<ScoreRequest> requests = {{{2, 14, 15}, {11, 12, 1}}, {{2, 3}, {13}}};
  const std::vector<TokenScores> expected = score(plain, requests);
  OtherTeacher teacher(load(), TeacherRest::kOnHost);
  for (int use = 0; use < 2; ++use) {
    {
      const TeacherInUse here(teacher);
      EXPECT_EQ(weight_bytes(teacher.model()), weight_bytes(plain));
      EXPECT_EQ(score(teacher.model(), requests)[0].logp, expected[0].logp);
    }
    for (const ParameterBlock& block : teacher.model().parameters().blocks())
      EXPECT_EQ(block.values.storage().nbytes(), 0u);
  }
}

// t is what the other model says after the student's own prompt, scored here one by one.
TEST(OtherTeacher, OpdComparesWithItsScoresOfTheStudentsPrompt) {
  SmallTraining training(opd({"train.steps=1"}));
  EXPECT_EQ(training.config.context.control, "prompt-alone");
  const CausalLm student = load_model(training.files / "model", at::kCPU, at::kFloat);
  ASSERT_TRUE(training.run());
  const std::vector<Json> rows = training.rows("rollouts/step-000001.jsonl");
  ASSERT_EQ(rows.size(), 12u);
  for (const Json& row : rows) {
    EXPECT_EQ(row["context_source"], "prompt");
    const std::vector<ScoreRequest> alone = {{row["teacher_prompt_ids"].get<std::vector<TokenId>>(),
                                              row["response_ids"].get<std::vector<TokenId>>()}};
    const std::vector<float> t = score(training.other_teacher->model(), alone)[0].logp,
                             s = score(student, alone)[0].logp;
    for (std::size_t i = 0; i < t.size(); ++i)
      EXPECT_NEAR(row["token_advantage"][i].get<double>(), 0.5 * (double(t[i]) - s[i]), 1e-5);
  }
}

// The student learns what the teacher says; without rewards that differ.
TEST(OtherTeacher, EveryDivergenceFalls) {
  for (const char* divergence : {"forward-kl", "reverse-kl", "jsd"}) {
    for (const char* top_k : {"0", "5"}) {
      SCOPED_TRACE(fmt::format("{}, top_k {}", divergence, top_k));
      SmallTraining training(opd({fmt::format("method.opd.divergence={}", divergence),
                                  fmt::format("method.opd.top_k={}", top_k), "train.steps=25",
                                  "record.rollouts_every=0", "optim.lr=0.02"}));
      ASSERT_TRUE(training.run());
      const std::vector<Json> rows = training.rows("metrics.jsonl");
      const auto loss = [&](std::size_t i) { return rows[i]["actor/pg_loss"].get<double>(); };
      EXPECT_GT(loss(0), 0);
      EXPECT_LT(loss(24), 0.5 * loss(0));
    }
  }
}

// States that are kept before the update are those of a teacher that runs in the update's pass: a
// copy of the student, whose divergence from itself under its own prompt is 0.
TEST(OtherTeacher, ACopyOfTheStudentTeachesNothingInTheFirstStep) {
  SmallTraining training(opd({"method.opd.divergence=reverse-kl", "train.steps=1"}));
  training.other_teacher.emplace(load_model(training.files / "model", at::kCPU, at::kFloat),
                                 TeacherRest::kWhereItIs);
  ASSERT_TRUE(training.run());
  EXPECT_NEAR(training.rows("metrics.jsonl")[0]["actor/pg_loss"].get<double>(), 0, 1e-6);
}

TEST(OtherTeacher, RestChangesNoBit) {
  for (const char* divergence : {"sampled", "jsd"}) {
    const auto train = [&](TeacherRest rest) {
      SmallTraining training(opd({fmt::format("method.opd.divergence={}", divergence)}));
      training.other_teacher.emplace(load_model(training.files / "teacher", at::kCPU, at::kFloat),
                                     rest);
      EXPECT_TRUE(training.run());
      return weight_bytes(training.state->model);
    };
    EXPECT_EQ(train(TeacherRest::kOnHost), train(TeacherRest::kWhereItIs)) << divergence;
  }
}

TEST(OtherTeacher, RanksScoreTheirSharesAsOneProcessDoes) {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"method.opd.divergence=sampled"},
        {"method.opd.divergence=forward-kl", "train.minibatches=2", "train.epochs=2"},
        {"method.opd.divergence=jsd", "method.opd.top_k=4"},
        {"method.name=sdpo", "method.sdpo.top_k=5"},
        {"method.name=antisd"}}) {
    std::vector<std::string> settings = opd(more);
    settings.push_back("train.micro_batches=3");
    SCOPED_TRACE(more[0]);
    expect_same(train_on(3, settings), train_alone(settings));
    expect_same(train_on(3, settings, {.members = 3, .gradients = true, .weights = true}),
                train_alone(settings));
  }
}

TEST(OtherTeacher, ACheckpointNamesItAndAnotherOneIsRefused) {
  SmallTraining training(opd({"train.steps=2", "checkpoint.every=1", "checkpoint.keep=5"}));
  ASSERT_TRUE(training.run());
  const std::filesystem::path checkpoint =
      training.recorder->directory() / "checkpoints/step-000001";
  EXPECT_FALSE(std::filesystem::exists(checkpoint / "teacher"));
  const std::string last = weight_bytes(training.state->model);

  SmallTraining same(opd({"train.steps=2"}));
  same.state->other_teacher->path = "elsewhere";
  resume(*same.state, checkpoint);  // the same weights in another place
  ASSERT_TRUE(same.run());
  EXPECT_EQ(weight_bytes(same.state->model), last);

  SmallTraining other(opd({}));
  other.state->other_teacher = identify_base(make_other_teacher(other.files / "second", 10));
  SmallTraining none({"method.name=opd"});
  for (const auto& [state, name] : {std::pair(other.state.get(), std::string("second")),
                                    std::pair(none.state.get(), std::string("the model itself"))}) {
    try {
      resume(*state, checkpoint);
      FAIL();
    } catch (const InputError& error) {
      EXPECT_THAT(error.message(),
                  AllOf(HasSubstr("the run's teacher was teacher (weights "), HasSubstr(name),
                        HasSubstr("set method.teacher.path back")));
    }
  }
}

// One process or three ranks: what the program says of each response, and what it fails at.
TEST(TrainerContextCommand, IsAskedOnceForEveryResponse) {
  const testing::TemporaryFolder folder;
  write_file_atomically(folder / "hints.py", R"(import json, sys
for line in iter(sys.stdin.readline, ""):
    row = json.loads(line)
    lost = len(row["response"]) % 3 == 0
    text = json.dumps({"wrong": 1} if lost else {"context": "boxed " + row["problem"].split()[1]})
    print(text, flush=True)
)");
  const std::vector<std::string> settings = {
      "train.steps=2", "train.micro_batches=3",
      "context.command=python3 -IS " + (folder / "hints.py").string()};
  SmallTraining training(settings);
  ASSERT_TRUE(training.run());
  int told = 0, failed = 0;
  for (const Json& row : training.rows("rollouts/step-000001.jsonl")) {
    const bool by_program = row["context_source"] == "command";
    EXPECT_EQ(by_program, row["text"].get<std::string>().size() % 3 != 0);
    (by_program ? told : failed) += 1;
  }
  EXPECT_GT(told, 0);
  EXPECT_GT(failed, 0);
  EXPECT_EQ(training.rows("metrics.jsonl")[0]["context/command_failed"], failed);
  expect_same(train_on(3, settings), train_alone(settings));
}

}  // namespace
}  // namespace antisd::inline trainer
