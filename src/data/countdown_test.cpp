#include "data/countdown.h"

#include <map>
#include <set>
#include <sstream>

#include <gmock/gmock.h>

#include "core/testing.h"
#include "data/prompt_set.h"

namespace antisd::inline data {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;)
    words.push_back(word);
  return words;
}

// The sorted numbers and the target, read from the text.
std::string key_of(const std::string& prompt) {
  const std::vector<std::string> words = words_of(prompt);
  std::vector<int> numbers;
  std::size_t at = 1;
  for (; words[at] != "target"; ++at)
    numbers.push_back(std::stoi(words[at]));
  std::sort(numbers.begin(), numbers.end());
  std::string key;
  for (const int number : numbers)
    key += std::to_string(number) + " ";
  return key + "> " + words[at + 1];
}

TEST(CountdownTask, NamesOfSources) {
  const CountdownSource plain = CountdownSource::parse("countdown:3", 5);
  EXPECT_EQ(plain.counts, std::vector<int>{3});
  EXPECT_EQ(plain.split, CountdownSplit::kTrain);
  EXPECT_EQ(plain.problems, 5'000);
  EXPECT_EQ(plain.seed, 5u);
  EXPECT_EQ(CountdownSource::parse("countdown:4:held-out").problems, 512);
  const CountdownSource all = CountdownSource::parse("countdown:3+4:held-out:77:seed=9");
  EXPECT_EQ(all.counts, (std::vector<int>{3, 4}));
  EXPECT_EQ(all.split, CountdownSplit::kHeldOut);
  EXPECT_EQ(all.problems, 77);
  EXPECT_EQ(all.seed, 9u);
  EXPECT_EQ(all.name(), "countdown-3-4-held-out");
  for (const char* wrong : {"countdown:", "countdown:5", "countdown:3:x", "countdown:3:0",
                            "countdown:3:seed=", "countdown:3:seed=-1", "countdown:3:12a"}) {
    EXPECT_THAT(testing::error_of([&] { CountdownSource::parse(wrong); }),
                HasSubstr("is not part of a countdown source"))
        << wrong;
  }
}

TEST(CountdownTask, ProblemsAreDistinctAndOfTheirRange) {
  for (const auto& [spec, count, greatest] :
       {std::tuple{"countdown:3:2000", 3, 20}, {"countdown:4:2000", 4, 12}}) {
    const PromptSet problems = PromptSet::load({.files = {spec}, .map = {}, .count_tokens = {}});
    ASSERT_EQ(problems.size(), 2000u);
    std::set<std::string> keys;
    std::set<int> targets, numbers;
    for (const Problem& problem : problems) {
      const std::vector<std::string> words = words_of(problem.problem);
      ASSERT_EQ(std::ssize(words), count + 3);
      for (int i = 1; i <= count; ++i)
        numbers.insert(std::stoi(words[i]));
      targets.insert(std::stoi(words.back()));
      EXPECT_EQ(problem.answer, words.back());
      keys.insert(key_of(problem.problem));
    }
    EXPECT_EQ(keys.size(), 2000u);
    EXPECT_EQ(*numbers.begin(), 2);
    EXPECT_EQ(*numbers.rbegin(), greatest);
    EXPECT_GE(*targets.begin(), 10);
    EXPECT_LE(*targets.rbegin(), 99);
  }
  EXPECT_THAT(testing::error_of(
                  [] { countdown_rows(CountdownSource::parse("countdown:3:held-out:100000")); }),
              HasSubstr("different problems"));
}

TEST(CountdownTask, AreAFunctionOfTheSeed) {
  const Json first = countdown_rows(CountdownSource::parse("countdown:3+4:50:seed=1"));
  EXPECT_EQ(first, countdown_rows(CountdownSource::parse("countdown:3+4:50:seed=1")));
  EXPECT_NE(first, countdown_rows(CountdownSource::parse("countdown:3+4:50:seed=2")));
  // A smaller set is a prefix of a larger one.
  const Json more = countdown_rows(CountdownSource::parse("countdown:3+4:80:seed=1"));
  for (std::size_t i = 0; i < first.size(); ++i)
    EXPECT_EQ(first[i], more[i]);
  EXPECT_EQ(first[0]["id"], "countdown-3-4-1");
  const CountdownSource source = CountdownSource::parse("countdown:4");
  EXPECT_EQ(countdown_document(source, {}, 3, 9).response,
            countdown_document(source, {}, 3, 9).response);
  EXPECT_NE(countdown_document(source, {}, 3, 9).prompt,
            countdown_document(source, {}, 4, 9).prompt);
}

// Trained models rely on the split: it must never change.
TEST(CountdownTask, TheSplitStaysAsItIs) {
  int held_out = 0;
  std::uint64_t sum = 0;
  for (int a = 2; a <= 20; ++a) {
    for (int b = a; b <= 20; ++b) {
      for (int c = b; c <= 20; ++c) {
        for (int target = 10; target <= 99; ++target) {
          if (countdown_split({c, a, b}, target) == CountdownSplit::kTrain) continue;
          ++held_out;
          sum = sum * 31 + std::uint64_t(((a * 100 + b) * 100 + c) * 100 + target);
        }
      }
    }
  }
  EXPECT_EQ(held_out, 12'034);
  EXPECT_EQ(sum, 11'255'983'337'834'987'316u);
}

TEST(CountdownTask, NoHeldOutProblemIsInTheDocuments) {
  std::set<std::string> held_out;
  for (const Json& row : countdown_rows(CountdownSource::parse("countdown:3:held-out:900")))
    held_out.insert(key_of(row["problem"]));
  for (const Json& row : countdown_rows(CountdownSource::parse("countdown:4:held-out:2500:seed=3")))
    held_out.insert(key_of(row["problem"]));
  std::set<std::string> trained;
  const CountdownSource source = CountdownSource::parse("countdown:3+4");
  for (std::uint32_t i = 0; i < 50'000; ++i)
    trained.insert(key_of(countdown_document(source, {}, i / 640, i % 640).prompt));
  for (const std::string& key : held_out)
    EXPECT_FALSE(trained.contains(key)) << key;
  // Checks the comparison itself: most other problems do occur.
  int met = 0;
  const Json rows = countdown_rows(CountdownSource::parse("countdown:4:1000:seed=3"));
  for (const Json& row : rows)
    met += trained.contains(key_of(row["problem"]));
  EXPECT_GT(met, 300);
}

// Checks every word of a document and counts the shares from the text.
TEST(CountdownTask, DocumentsFollowTheMix) {
  const CountdownSource source = CountdownSource::parse("countdown:4");
  const MixConfig mix;
  const int count = 20'000;
  std::map<std::string, int> seen;
  for (std::uint32_t i = 0; i < count; ++i) {
    const CountdownDocument document = countdown_document(source, mix, 0, i);
    const std::vector<std::string> prompt = words_of(document.prompt);
    EXPECT_EQ(prompt.back(), "|");
    const bool hinted = prompt.size() > 8;
    std::string shown;
    if (hinted) {
      ++seen["hinted"];
      const std::size_t begin = document.prompt.find("attempt ") + 8;
      shown = document.prompt.substr(begin, document.prompt.find(" Assessment") - begin);
      EXPECT_THAT(document.prompt, HasSubstr(" Previous attempt Let "));
      EXPECT_THAT(document.prompt, ::testing::EndsWith(" Solve |"));
      seen[prompt[prompt.size() - 3]]++;
    }
    const std::string& target = prompt[6];
    if (hinted && document.response == shown) ++seen["copied"];
    std::string rest = document.response;
    int tries = 0;
    for (std::size_t end = 0; end != std::string::npos; ++tries) {
      end = rest.find(" Wait ");
      const std::string attempt = rest.substr(0, end);
      if (end != std::string::npos) rest = rest.substr(end + 6);
      const std::vector<std::string> words = words_of(attempt.substr(0, attempt.find(" So ")));
      ASSERT_EQ(words.size(), 19u) << attempt;  // Let, three steps of five, two signs, the verdict
      EXPECT_EQ(words.front(), "Let");
      const bool holds = words[17] == target;
      EXPECT_EQ(words.back(), holds ? "holds" : "no");
      const std::string kind = hinted ? "hinted " : "plain ";
      ++seen[kind + (holds ? "holds" : "no")];
      seen[kind + (holds ? "holds, on" : "no, on")] += end != std::string::npos;
      if (end == std::string::npos) {
        EXPECT_THAT(attempt, HasSubstr(" So boxed " + words[17]));
      }
    }
    EXPECT_LE(tries, 12);
  }
  const auto share = [&](const char* a, const char* b) { return double(seen[a]) / seen[b]; };
  EXPECT_NEAR(seen["hinted"] / double(count), 0.3, 0.015);
  EXPECT_NEAR(share("plain no, on", "plain no"), 0.6, 0.01);
  EXPECT_NEAR(share("plain holds, on", "plain holds"), 0.02, 0.02);
  EXPECT_NEAR(share("hinted no, on", "hinted no"), 0.35, 0.02);
  // Copied at once, or as the first try of a search that stops there.
  EXPECT_NEAR(share("copied", "hinted"), 0.4 + 0.6 * 0.3 * 0.98, 0.03);
  EXPECT_NEAR(share("correct", "hinted"), 0.5, 0.03);
}

}  // namespace
}  // namespace antisd::inline data
