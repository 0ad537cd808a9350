// Which solution a teacher is shown (a correct peer, the data set's, its answer, none), and what
// its prompt looks like.
#include "context/context_builder.h"

#include <gmock/gmock.h>

#include "context/solution.h"
#include "context/testing.h"
#include "core/check.h"
#include "core/testing.h"

namespace antisd::inline context {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::response_with;
using ::testing::StartsWith;
using testing::word_tokenizer;
using testing::words;

constexpr const char* kChat =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}{{ mood }}";

TEST(ShortenSolution, KeepsAQuarterAtTheFrontAndTheRestAtTheEnd) {
  const Tokenizer tokenizer = word_tokenizer();
  const std::string cut = shorten_solution(tokenizer, words(0, 10'000), 3072);
  EXPECT_EQ(cut, words(0, 768) + std::string(kCutMarker) + words(10'000 - 2304, 10'000));
  EXPECT_EQ(tokenizer.encode(cut).size(), 3072u + 1);  // the marker is not counted
  EXPECT_EQ(shorten_solution(tokenizer, words(0, 3072), 3072), words(0, 3072));
  EXPECT_EQ(shorten_solution(tokenizer, "", 16), "");
}

TEST(ShortenSolution, LeavesNoHalfCharacters) {
  const Tokenizer tokenizer = Tokenizer::load(testing::fixture("text/qwen"));
  std::string text;
  for (int i = 0; i < 60; ++i)
    text += "\xF0\x9D\x9B\x91\xE6\xBC\xA2\xC3\xA9";
  bool cut_a_character = false;
  for (std::int64_t budget = 16; budget < 48; ++budget) {
    const std::string shortened = shorten_solution(tokenizer, text, budget);
    EXPECT_THAT(shortened, HasSubstr(std::string(kCutMarker)));
    EXPECT_THAT(shortened, Not(HasSubstr("\xEF\xBF\xBD")));
    const std::vector<TokenId> ids = tokenizer.encode(text);
    cut_a_character |= tokenizer.decode(std::span(ids).first(budget / 4)).ends_with("\xEF\xBF\xBD");
  }
  EXPECT_TRUE(cut_a_character);
}

class ContextBuilderTest : public ::testing::Test {
 protected:
  ContextBuilderTest() : renderer_(word_tokenizer(), ChatTemplate(kChat), data_) {
    problem_.id = "p";
    problem_.problem = "1 + 1?";
    problem_.answer = "2";
    problem_.solution = "Count.";
  }

  ContextBuilder builder(const std::string& task = "math") const {
    return ContextBuilder(config_, task, /*seed=*/1, renderer_);
  }

  // The text of a teacher's prompt.
  std::string prompt(const ContextBuilder& context, const Solution& solution,
                     const Verdict& grade) const {
    return renderer_.text(context.teacher_messages(problem_, solution, grade));
  }

  DataConfig data_;
  ContextConfig config_;
  PromptRenderer renderer_;
  Problem problem_;
};

TEST_F(ContextBuilderTest, AMathTeacherSeesPromptSolutionAndVerdict) {
  EXPECT_EQ(prompt(builder(), {ContextSource::kPeer, "It is 2."}, {.reward = 0.0}),
            "<user>Solve the following math problem. Place the final answer in \\boxed{}.\n"
            "1 + 1?\n\nYour previous attempt:\nIt is 2.\n\n"
            "Previous assessment: Your answer is incorrect.\n\n"
            "Now solve this problem step by step.<assistant>");
  EXPECT_EQ(prompt(builder(), {}, {.reward = 1.0}),
            "<user>Solve the following math problem. Place the final answer in \\boxed{}.\n"
            "1 + 1?\n\nPrevious assessment: Your answer is correct.\n\n"
            "Now solve this problem step by step.<assistant>");
}

TEST_F(ContextBuilderTest, ACodeTeacherSeesHowManyTestsPassed) {
  EXPECT_THAT(prompt(builder("code"), {ContextSource::kPeer, "def f(): pass"},
                     {.reward = .5, .passed = 6, .total = 12}),
              HasSubstr("def f(): pass\n\nPrevious assessment: Your code passes 6 of 12 test "
                        "cases.\n\nNow"));
}

TEST_F(ContextBuilderTest, ChatListsKeepTheirOtherMessages) {
  problem_.messages = {{"system", "Be brief."}, {"user", "1 + 1?"}};
  EXPECT_THAT(prompt(builder(), {ContextSource::kPeer, "It is {prompt} 2."}, {.reward = 1.0}),
              StartsWith("<system>Be brief.<user>1 + 1?\n\nYour previous attempt:\nIt is {prompt} "
                         "2.\n\n"));
}

TEST_F(ContextBuilderTest, FallsBackToSolutionThenAnswerThenNothing) {
  const ContextBuilder context = builder();
  EXPECT_EQ(context.fallback(problem_).source, ContextSource::kDataset);
  EXPECT_EQ(context.fallback(problem_).text, "Count.");
  problem_.solution.reset();
  EXPECT_EQ(context.fallback(problem_).source, ContextSource::kAnswer);
  EXPECT_EQ(context.fallback(problem_).text, "The answer is \\boxed{2}.");
  problem_.answer.clear();
  EXPECT_EQ(context.fallback(problem_).source, ContextSource::kFeedback);

  config_.fallback = "feedback";
  problem_.solution = "Count.";
  EXPECT_EQ(builder().fallback(problem_).source, ContextSource::kFeedback);
}

TEST_F(ContextBuilderTest, LongSolutionsLoseTheirMiddleAndNothingElse) {
  config_.max_solution_tokens = 16;
  problem_.solution = words(0, 100);
  const ContextBuilder context = builder();
  EXPECT_EQ(context.fallback(problem_).text,
            words(0, 4) + std::string(kCutMarker) + words(88, 100));
  EXPECT_EQ(context.solution_of(response_with("w1 </think> " + words(0, 20), 1)),
            words(0, 4) + std::string(kCutMarker) + words(8, 20));
}

TEST_F(ContextBuilderTest, SolutionsAreCutToTheModelsPositionsAndCounted) {
  problem_.solution = words(0, 100);
  const std::vector<Problem> problems = {problem_};
  const PromptBatch prompts = renderer_.batch(4, problems, std::vector<std::size_t>{0});
  const auto built = [&](std::int64_t positions, std::int64_t expected_cuts) {
    ResponseBatch batch;
    batch.groups = {{{response_with("w10", 0), response_with("w11", 0)}}};
    batch.groups[0].responses[0].ids.assign(30, 1);
    batch.groups[0].responses[1].ids.assign(3, 1);
    EXPECT_EQ(builder().build(prompts, batch, positions), expected_cuts) << positions;
    return batch;
  };
  const ResponseBatch whole = built(1 << 20, 0);
  const std::int64_t longest = std::ssize(whole[0].context.prompt_ids) + 30;
  EXPECT_EQ(built(longest, 0)[0].context.prompt_ids, whole[0].context.prompt_ids);
  const ResponseBatch fitted = built(longest - 20, 1);  // the shorter response fits as it is
  EXPECT_EQ(fitted[1].context.prompt_ids, whole[1].context.prompt_ids);
  EXPECT_LE(std::ssize(fitted[0].context.prompt_ids) + 30, longest - 20);
  EXPECT_GT(std::ssize(fitted[0].context.prompt_ids) + 30, longest - 60);
  // Too little room for any solution: the caller is told by the length.
  EXPECT_GT(std::ssize(built(20, 0)[0].context.prompt_ids), 20);
  config_.max_solution_tokens = 16;
  built(1 << 20, 2);
}

TEST_F(ContextBuilderTest, EveryRolloutSeesAnotherOnesSolutionAndItsOwnVerdict) {
  const std::vector<Problem> problems = {problem_, problem_};
  const PromptBatch prompts = renderer_.batch(4, problems, std::vector<std::size_t>{0, 1});
  EXPECT_EQ(prompts.prompts[1].index, 1u);
  EXPECT_EQ(prompts.prompts[0].ids, renderer_.encode(problem_));
  ResponseBatch batch;
  batch.groups = {{{response_with("w10", 0), response_with("w1 </think> w11", 1),
                    response_with("w12", 1), response_with("w13", std::nullopt)}},
                  {{response_with("w20", 0), response_with("w21", 0), response_with("w22", 1),
                    response_with("w23 </think>", 1)}}};
  const ContextBuilder context = builder();
  context.build(prompts, batch);

  const auto expect = [&](std::size_t r, ContextSource source, const std::string& text) {
    EXPECT_EQ(batch[r].context.source, source) << r;
    EXPECT_EQ(batch[r].context.prompt_ids, renderer_.encode(context.teacher_messages(
                                               problem_, {source, text}, batch[r].verdict)))
        << r;
  };
  expect(1, ContextSource::kPeer, "w12");  // two are correct: each is shown the other
  expect(2, ContextSource::kPeer, "w11");  // without the thinking
  EXPECT_EQ(batch[0].context.source, ContextSource::kPeer);
  EXPECT_EQ(batch[3].context.source, ContextSource::kNone);  // the grade failed
  EXPECT_TRUE(batch[3].context.prompt_ids.empty());
  expect(4, ContextSource::kPeer, "w22");
  expect(5, ContextSource::kPeer, "w22");
  expect(6, ContextSource::kDataset, "Count.");  // the other correct one shows nothing
  expect(7, ContextSource::kPeer, "w22");
  EXPECT_THROW(context.build({}, batch), CheckFailure);
}

TEST(PromptRenderer, ChatOptionsReachTheTemplate) {
  DataConfig data;
  data.chat_options["mood"] = std::string("calm");
  const PromptRenderer renderer(word_tokenizer(), ChatTemplate(kChat), data);
  EXPECT_THAT(renderer.text(std::vector<ChatMessage>{{"user", "w1"}}), EndsWith("<assistant>calm"));
}

TEST(PromptRenderer, AChatOptionThatTheTemplateNeverReadsIsRefused) {
  const auto refused = [](const std::string& name) {
    DataConfig data;
    data.chat_options[name] = std::string("calm");
    return testing::error_of([&] { PromptRenderer(word_tokenizer(), ChatTemplate(kChat), data); });
  };
  EXPECT_EQ(refused("modd"),
            "data.chat_options: the chat template never reads 'modd'; did you mean 'mood'?");
  EXPECT_THAT(refused("enable_thinking"), HasSubstr("never reads 'enable_thinking'"));
}

TEST(PromptRenderer, WithoutAChatTemplateTextsAreJoined) {
  DataConfig data;
  data.template_name = "countdown";
  const PromptRenderer renderer(word_tokenizer(), std::nullopt, data);
  Problem problem;
  problem.problem = "Numbers w4 w11 target w29";
  problem.answer = "w29";
  const ContextBuilder context({}, "countdown", 0, renderer);
  EXPECT_EQ(renderer.text(renderer.student_messages(problem)), "Numbers w4 w11 target w29 |");
  const std::string shown =
      context.solution_of(response_with("Let w4 no Wait Let w11 = w29 holds So boxed w29", 1));
  EXPECT_EQ(shown, "Let w11 = w29 holds So boxed w29");
  EXPECT_EQ(renderer.text(
                context.teacher_messages(problem, {ContextSource::kPeer, shown}, {.reward = 0.0})),
            "Numbers w4 w11 target w29 Previous attempt Let w11 = w29 holds So boxed w29 "
            "Assessment incorrect Solve |");
  EXPECT_EQ(context.fallback(problem).text, "boxed w29");
}

TEST(PromptRenderer, APlainTextHasTheFirstTokenButNoLastOne) {
  const Tokenizer smol = Tokenizer::load(testing::fixture("text/smol"));
  Problem problem;
  problem.messages = {{"user", "one two"}};
  std::vector<TokenId> expected = smol.encode("one two", /*add_special_tokens=*/true);
  ASSERT_EQ(expected.size(), smol.encode("one two").size() + 2);  // one before, one behind
  expected.pop_back();
  EXPECT_EQ(PromptRenderer(smol, std::nullopt, {}).encode(problem), expected);
}

// The real template and tokenizer: the teacher's prompt is the student's with the context in it.
TEST(PromptRenderer, QwensTeacherPrompt) {
  const auto files = testing::shared_data("models/qwen");
  ANTISD_NEEDS_SHARED(files);
  const testing::TemporaryFolder model;
  for (const auto& [theirs, ours] : {std::pair{"vocab.json", "vocab.json"},
                                     {"merges.txt", "merges.txt"},
                                     {"qwen3_tokenizer_config.json", "tokenizer_config.json"},
                                     {"chat_template_qwen3.jinja", "chat_template.jinja"}})
    std::filesystem::copy_file(files / theirs, model / ours);
  DataConfig data;
  data.chat_options["enable_thinking"] = false;
  const PromptRenderer renderer(Tokenizer::load(model.path()), ChatTemplate::load(model.path()),
                                data);
  const ContextBuilder context({}, "math", 0, renderer);
  Problem problem;
  problem.problem = "What is $2^{10}$?";
  const std::string student = renderer.text(renderer.student_messages(problem));
  const std::string teacher = renderer.text(context.teacher_messages(
      problem, {ContextSource::kPeer, "It is \\boxed{1024}."}, {.reward = 0.0}));
  const std::size_t question = student.find("What is $2^{10}$?") + 17;
  EXPECT_THAT(teacher, StartsWith(student.substr(0, question)));
  EXPECT_THAT(teacher, EndsWith(student.substr(question)));  // the assistant's header
  EXPECT_EQ(teacher.substr(question, teacher.size() - student.size()),
            "\n\nYour previous attempt:\nIt is \\boxed{1024}.\n\nPrevious assessment: Your answer "
            "is incorrect.\n\nNow solve this problem step by step.");
  EXPECT_EQ(renderer.tokenizer().decode(renderer.encode(problem)), student);
}

// Controls: three problems, of which the first has a right and two wrong responses, the second two
// right ones, and the third none.
class ContextControlTest : public ContextBuilderTest {
 protected:
  ContextControlTest() {
    for (int p = 0; p < 3; ++p) {
      problems_[p] = problem_;
      problems_[p].solution = fmt::format("Given {}.", p);
      prompts_.prompts.push_back({.id = fmt::format("p{}", p),
                                  .index = static_cast<std::uint32_t>(p),
                                  .problem = &problems_[p],
                                  .ids = {}});
    }
    const std::vector<std::vector<double>> rewards = {{1, 0, 0}, {1, 1, 0}, {0, 0, 0}};
    for (std::size_t p = 0; p < 3; ++p) {
      ResponseGroup& group = batch_.groups.emplace_back();
      for (std::size_t i = 0; i < 3; ++i)
        group.responses.push_back(response_with(fmt::format("Told {} {}.", p, i), rewards[p][i]));
    }
  }

  // The text of the teacher's prompt for each response.
  std::vector<std::string> shown(const std::string& control) {
    config_.control = control;
    ResponseBatch batch = batch_;
    ContextBuilder(config_, "math", /*seed=*/1, text_).build(prompts_, batch);
    std::vector<std::string> texts;
    for (std::size_t r = 0; r < batch.size(); ++r) {
      texts.push_back(text_.tokenizer().decode(batch[r].context.prompt_ids));
      sources_[r] = batch[r].context.source;
    }
    return texts;
  }

  // Its words can be read back.
  PromptRenderer text_{Tokenizer::load(testing::fixture("text/qwen")), ChatTemplate(kChat), data_};
  Problem problems_[3];
  PromptBatch prompts_;
  ResponseBatch batch_;
  ContextSource sources_[9] = {};
};

TEST_F(ContextControlTest, AnotherProblemsSolutionIsShownInItsPlace) {
  const std::vector<std::string> texts = shown("other-problem");
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_THAT(texts[i], HasSubstr("Told 1 "));       // of the second problem
    EXPECT_THAT(texts[3 + i], HasSubstr("Given 2."));  // the third has no right response
    EXPECT_EQ(sources_[i], ContextSource::kOther);
    EXPECT_EQ(sources_[3 + i], ContextSource::kOther);
  }
  EXPECT_THAT(texts[7], HasSubstr("Told 0 0."));  // round to the first
}

TEST_F(ContextControlTest, AWrongRolloutIsShownInItsPlace) {
  const std::vector<std::string> texts = shown("wrong");
  EXPECT_THAT(texts[1], HasSubstr("Told 0 2."));  // never itself, never the right one
  EXPECT_THAT(texts[2], HasSubstr("Told 0 1."));
  EXPECT_EQ(sources_[1], ContextSource::kWrong);
  EXPECT_THAT(texts[5], Not(HasSubstr("previous attempt")));  // the only wrong one of its group
  EXPECT_EQ(sources_[5], ContextSource::kFeedback);
}

TEST_F(ContextControlTest, TheVerdictMayBeOnTheSolutionOrLeftOut) {
  for (const std::string& text : shown("truthful-verdict"))
    EXPECT_THAT(text, HasSubstr("Your answer is correct."));
  const std::vector<std::string> plain = shown("none"), without = shown("no-verdict");
  for (std::size_t r = 0; r < without.size(); ++r) {
    EXPECT_THAT(plain[r], HasSubstr("assessment"));
    EXPECT_THAT(without[r], Not(HasSubstr("assessment")));
    EXPECT_THAT(without[r], Not(HasSubstr("orrect")));
    EXPECT_THAT(without[r], HasSubstr("Now solve this problem"));
  }
}

TEST_F(ContextControlTest, ThePromptAloneIsTheStudents) {
  for (const std::string& text : shown("prompt-alone"))
    EXPECT_EQ(text, text_.tokenizer().decode(text_.encode(text_.student_messages(problem_))));
  EXPECT_EQ(sources_[0], ContextSource::kPrompt);
}

// Every response is shown the column, whatever its peers are; an empty one falls back.
TEST_F(ContextBuilderTest, AColumnOfTheDataSetIsShownInPlaceOfAPeer) {
  config_.column = "extra.hint";
  problem_.row = {{"extra", {{"hint", "Use fingers."}, {"level", 3}}}, {"note", nullptr}};
  PromptBatch prompts;
  prompts.prompts.push_back({.id = "p", .index = 0, .problem = &problem_, .ids = {}});
  ResponseBatch batch;
  batch.groups.push_back({{response_with("two", 1.0), response_with("three", 0.0)}});
  builder().build(prompts, batch);
  for (const Response& response : batch.groups[0].responses) {
    EXPECT_EQ(response.context.source, ContextSource::kColumn);
    EXPECT_EQ(response.context.prompt_ids,
              renderer_.encode(builder().teacher_messages(
                  problem_, {ContextSource::kColumn, "Use fingers."}, response.verdict)));
  }
  config_.column = "note";
  EXPECT_EQ(builder().from_row(problem_).source, ContextSource::kDataset);
  EXPECT_EQ(builder().from_row(problem_).text, "Count.");
}

TEST_F(ContextBuilderTest, AColumnThatIsNotThereOrNotTextIsRefusedByName) {
  problem_.row = {{"extra", {{"hint", "Use fingers."}, {"level", 3}}}};
  const auto problem = [&](const char* column) {
    return testing::error_of([&] { column_text(problem_, column); });
  };
  EXPECT_THAT(problem("hint"), HasSubstr("no column 'hint'; the row has: extra.hint, extra.level"));
  EXPECT_THAT(problem("extra.level"), HasSubstr("'extra.level' is not text but number"));
}

}  // namespace
}  // namespace antisd::inline context
