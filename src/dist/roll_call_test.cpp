#include "dist/roll_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antisd::inline dist {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

// Rank 0 of three hears the others for `seconds`, a beat each half second. Rank 2 beats while
// `alive`.
class Listener {
 public:
  explicit Listener(RollCallOptions options = {.rank = 0, .size = 3, .silence_s = 10})
      : roll(options) {
    for (Beat& beat : beats)
      beat.text = "scoring of step 3";
  }

  void listen(double seconds, bool alive) {
    for (double t = 0; t < seconds && !roll.loss(); t += 0.5) {
      ++beats[0].count;
      ++beats[1].count;
      if (alive) ++beats[2].count;
      roll.hear(beats);
      roll.pass(0.5);
    }
  }

  RollCall roll;
  std::vector<Beat> beats = std::vector<Beat>(3);
};

TEST(RollCall, BeatsSurviveTheStore) {
  const Beat beat{.count = 12, .state = Beat::State::kFailed, .text = "no memory\nfor 3 GB"};
  const Beat read = Beat::decode(beat.encode());
  EXPECT_EQ(read.count, 12);
  EXPECT_EQ(read.state, Beat::State::kFailed);
  EXPECT_EQ(read.text, beat.text);
  EXPECT_EQ(Beat::decode(Beat{.text = ""}.encode()).text, "");
}

TEST(RollCall, ASilentRankIsNamedWithItsPhase) {
  Listener listener;
  listener.listen(60, true);
  EXPECT_EQ(listener.roll.loss(), std::nullopt);
  listener.beats[2].text = "sampling of step 12";
  listener.listen(0.5, true);
  listener.listen(9.5, false);
  EXPECT_EQ(listener.roll.loss(), std::nullopt);
  listener.listen(1, false);
  EXPECT_EQ(listener.roll.loss(),
            "rank 2 has been silent for 10.5 s; it was in sampling of step 12");
  listener.listen(5, true);
  EXPECT_THAT(listener.roll.loss(), Optional(HasSubstr("10.5 s")));  // stays
}

TEST(RollCall, NobodyIsBlamedForTimeInWhichThisProcessDidNotRun) {
  Listener listener;
  listener.listen(2, true);
  listener.roll.pass(3600);  // the machine was suspended: nobody beat
  listener.roll.hear(listener.beats);
  listener.listen(3, false);  // the others need a moment
  EXPECT_EQ(listener.roll.loss(), std::nullopt);
  listener.listen(60, true);
  EXPECT_EQ(listener.roll.loss(), std::nullopt);
  listener.roll.pass(3600);
  listener.listen(11, false);  // rank 2 does not come back
  EXPECT_THAT(listener.roll.loss(), Optional(HasSubstr("rank 2 has been silent")));
}

TEST(RollCall, AStoreWithoutAnswersIsItsHoldersSilence) {
  for (const std::string& holder : {std::string(), std::string("torchrun's agent at n1:29500")}) {
    Listener listener({.rank = 1, .size = 3, .silence_s = 10, .store_holder = holder});
    listener.listen(2, true);
    for (int i = 0; i < 18; ++i)
      listener.roll.pass(0.5);
    listener.listen(3, false);  // it was only slow, and the others need a moment
    listener.listen(5, true);
    EXPECT_EQ(listener.roll.loss(), std::nullopt);
    for (int i = 0; i < 21; ++i)
      listener.roll.pass(0.5);
    EXPECT_THAT(
        listener.roll.loss(),
        Optional(std::string(holder.empty()
                                 ? "rank 0 has been silent for 10.5 s; it was in scoring of step 3"
                                 : "the ranks' store has been silent for 10.5 s, which is held by "
                                   "torchrun's agent at n1:29500")));
  }
}

TEST(RollCall, AStoreThatIsGoneIsItsHoldersDeath) {
  Listener listener({.rank = 1, .size = 3});
  listener.listen(1, true);
  listener.roll.lose_store();
  EXPECT_EQ(listener.roll.loss(), "rank 0 has died; it was in scoring of step 3");

  RollCall held({.rank = 1, .size = 2, .store_holder = "torchrun's agent"});
  held.lose_store();
  EXPECT_EQ(held.loss(), "the ranks' store is gone, which was held by torchrun's agent");
}

TEST(RollCall, FailuresAreReportedInTheWordsOfThoseWhoSawThem) {
  Listener failed;
  failed.beats[2] = {.count = 9, .state = Beat::State::kFailed, .text = "no memory"};
  failed.listen(0.5, true);
  EXPECT_EQ(failed.roll.loss(), "rank 2 failed: no memory");

  Listener noticed;
  noticed.beats[1] = {
      .count = 9, .state = Beat::State::kLost, .text = "rank 2 has been silent for 10.1 s"};
  noticed.listen(0.5, true);
  EXPECT_EQ(noticed.roll.loss(), "rank 2 has been silent for 10.1 s");
}

TEST(RollCall, LeavingIsNotDying) {
  Listener listener;
  listener.listen(2, true);
  EXPECT_TRUE(listener.roll.others_run());
  listener.beats[2].state = Beat::State::kLeft;
  listener.listen(8, true);
  EXPECT_EQ(listener.roll.absence(), std::nullopt);  // what it sent may still be under way
  listener.listen(3, true);
  EXPECT_EQ(listener.roll.loss(), std::nullopt);
  EXPECT_EQ(listener.roll.absence(), "rank 2 has ended its run, but rank 0 waits for it");
  EXPECT_TRUE(listener.roll.others_run());

  listener.beats[1].state = Beat::State::kGone;
  listener.listen(1, true);
  EXPECT_FALSE(listener.roll.others_run());
  EXPECT_TRUE(listener.roll.others_remain());
  listener.beats[2].state = Beat::State::kGone;
  listener.listen(60, false);
  EXPECT_FALSE(listener.roll.others_remain());
  EXPECT_EQ(listener.roll.loss(), std::nullopt);
}

}  // namespace
}  // namespace antisd::inline dist
