// What a user sees: a pseudo-terminal whose output is turned into screen lines.
#include "run/metrics/console.h"

#include <cstdlib>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

namespace antisd::inline run {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// Two connected descriptors: the console writes to one, the test reads the other.
class Screen {
 public:
  explicit Screen(bool terminal, unsigned short columns = 80) : columns_(columns) {
    ::setenv("TERM", "xterm", 1);
    if (!terminal) {
      int ends[2];
      if (::pipe(ends) != 0) throw std::runtime_error("pipe");
      reader_ = ends[0];
      writer_ = ends[1];
    } else {
      reader_ = ::posix_openpt(O_RDWR | O_NOCTTY);
      if (reader_ < 0 || ::grantpt(reader_) != 0 || ::unlockpt(reader_) != 0)
        throw std::runtime_error("pty");
      writer_ = ::open(::ptsname(reader_), O_RDWR | O_NOCTTY);
      struct termios settings {};
      ::tcgetattr(writer_, &settings);
      ::cfmakeraw(&settings);
      ::tcsetattr(writer_, TCSANOW, &settings);
      struct winsize size {};
      size.ws_col = columns;
      size.ws_row = 24;
      ::ioctl(writer_, TIOCSWINSZ, &size);
    }
    ::fcntl(reader_, F_SETFL, O_NONBLOCK);
  }
  ~Screen() {
    ::close(reader_);
    ::close(writer_);
  }

  int descriptor() const { return writer_; }

  const std::string& bytes() {
    char chunk[4096];
    for (ssize_t count; (count = ::read(reader_, chunk, sizeof chunk)) > 0;)
      bytes_.append(chunk, static_cast<std::size_t>(count));
    return bytes_;
  }

  // The lines on the screen now; supports only what a console writes.
  std::vector<std::string> lines() {
    std::vector<std::string> lines = {""};
    std::size_t column = 0;
    const std::string& text = bytes();
    for (std::size_t i = 0; i < text.size(); ++i) {
      std::string& line = lines.back();
      if (text[i] == '\r') {
        column = 0;
      } else if (text[i] == '\n') {
        lines.emplace_back();
        column = 0;
      } else if (text.compare(i, 3, "\x1b[K") == 0) {
        line.resize(std::min(line.size(), column));
        i += 2;
      } else {
        EXPECT_NE(text[i], '\x1b') << "an unknown sequence";
        line.resize(std::max(line.size(), column + 1), ' ');
        line[column++] = text[i];
        EXPECT_LT(column, columns_) << "the line wraps: " << line;
      }
    }
    return lines;
  }

 private:
  int reader_ = -1, writer_ = -1;
  std::size_t columns_;
  std::string bytes_;
};

struct Clock {
  double seconds = 0;
  std::function<double()> function() {
    return [this] { return seconds; };
  }
};

TEST(Console, TheBarStaysBelowTheLog) {
  Screen screen(true);
  Clock clock;
  Console console({.descriptor = screen.descriptor(), .now = clock.function()});
  ProgressBar bar(console, {.label = "train", .total = 200, .done = 100});
  clock.seconds = 10;
  bar.update(120, {{"reward", 0.5}});
  EXPECT_THAT(screen.lines(),
              ElementsAre("train 120/200 [###############..........]  60%  2.0 step/s  ETA 40s  "
                          "reward 0.5"));
  console.info("saved\x1b[2J");
  EXPECT_THAT(screen.lines(), ElementsAre("saved\\x1b[2J", StartsWith("train 120/200")));
  console.warn("the disk is full");
  EXPECT_THAT(screen.lines(), ElementsAre("saved\\x1b[2J", "warning: the disk is full",
                                          StartsWith("train 120/200")));
  bar.finish();
  EXPECT_THAT(screen.lines(),
              ElementsAre("saved\\x1b[2J", "warning: the disk is full",
                          "train 120/200  60%  2.0 step/s  ETA 40s  reward 0.5  in 10s", ""));
}

TEST(Console, ABarThatIsLeftByAnErrorVanishes) {
  Screen screen(true);
  Console console({.descriptor = screen.descriptor()});
  try {
    ProgressBar bar(console, {.label = "train", .total = 3});
    EXPECT_THAT(screen.lines(), ElementsAre(StartsWith("train 0/3")));
    throw std::runtime_error("stop");
  } catch (const std::runtime_error&) {
  }
  EXPECT_THAT(screen.lines(), ElementsAre(""));
}

TEST(Console, AnInnerBarHidesTheOuterOne) {
  Screen screen(true);
  Console console({.descriptor = screen.descriptor()});
  ProgressBar outer(console, {.label = "train", .total = 3});
  {
    ProgressBar inner(console, {.label = "eval", .total = 2});
    outer.update(1);
    inner.update(2);
    EXPECT_THAT(screen.lines(), ElementsAre(StartsWith("eval 2/2")));
  }
  EXPECT_THAT(screen.lines(), ElementsAre(StartsWith("train 1/3")));
}

TEST(Console, FramesAreFewAndTheLastOneShows) {
  Screen screen(true);
  Clock clock;
  Console console({.descriptor = screen.descriptor(), .now = clock.function()});
  ProgressBar bar(console, {.label = "train", .total = 10'000});
  const std::size_t before = screen.bytes().size();
  for (int i = 1; i < 10'000; ++i)
    bar.update(i);
  EXPECT_EQ(screen.bytes().size(), before);
  bar.update(10'000);
  EXPECT_THAT(screen.lines(), ElementsAre(StartsWith("train 10000/10000")));
}

TEST(Console, NarrowTerminals) {
  for (unsigned short columns = 2; columns < 120; ++columns) {
    Screen screen(true, columns);
    Clock clock;
    Console console({.descriptor = screen.descriptor(), .now = clock.function()});
    ProgressBar bar(console, {.label = "train", .total = 200});
    clock.seconds = 1;
    bar.update(33, {{"reward", 0.123456}, {"loss", -1e-7}});
    EXPECT_THAT(screen.lines(), ElementsAre(Not(IsEmpty())));  // lines() detects one that wraps
  }
}

TEST(Console, APipeGetsLinesAtIntervalsAndNoControls) {
  Screen screen(false);
  Clock clock;
  Console console({.descriptor = screen.descriptor(), .line_seconds = 30, .now = clock.function()});
  ProgressBar bar(console, {.label = "train", .total = 100});
  for (int i = 1; i <= 100; ++i) {
    clock.seconds += 1;
    bar.update(i, {{"reward", 0.25}});
  }
  bar.finish();
  console.info("done");
  EXPECT_EQ(screen.bytes(),
            "train 30/100  30%  1.0 step/s  ETA 1m10s  reward 0.25\n"
            "train 60/100  60%  1.0 step/s  ETA 40s  reward 0.25\n"
            "train 90/100  90%  1.0 step/s  ETA 10s  reward 0.25\n"
            "train 100/100  100%  1.0 step/s  reward 0.25  in 1m40s\n"
            "done\n");
}

TEST(Console, ADumbTerminalGetsNoControls) {
  Screen screen(true);
  ::setenv("TERM", "dumb", 1);
  Console console({.descriptor = screen.descriptor()});
  ProgressBar bar(console, {.label = "train", .total = 100});
  bar.update(1);
  EXPECT_THAT(screen.bytes(), IsEmpty());
}

TEST(Console, QuietKeepsErrorsAlone) {
  for (const bool terminal : {true, false}) {
    Screen screen(terminal);
    Console console({.quiet = true, .descriptor = screen.descriptor(), .line_seconds = 0});
    ProgressBar bar(console, {.label = "train", .total = 100});
    bar.update(50);
    console.info("saved");
    console.warn("look");
    console.error("it failed");
    bar.finish();
    EXPECT_EQ(screen.bytes(), "antisd: it failed\n");
  }
}

TEST(Console, ASignalHandlerTakesTheBarAway) {
  Screen screen(true);
  Console console({.descriptor = screen.descriptor()});
  erase_progress_in_signal_handler();
  EXPECT_THAT(screen.bytes(), IsEmpty());
  ProgressBar bar(console, {.label = "train", .total = 100});
  erase_progress_in_signal_handler();
  EXPECT_THAT(screen.lines(), ElementsAre(""));
}

TEST(ProgressText, DurationsAndRates) {
  EXPECT_EQ(duration_text(0.4), "0s");
  EXPECT_EQ(duration_text(59.6), "1m00s");
  EXPECT_EQ(duration_text(3725), "1h02m");
  EXPECT_EQ(duration_text(100'000), "1d03h");
  EXPECT_EQ(duration_text(1.0 / 0.0), "long");
  EXPECT_EQ(progress_line_text({.label = "rows", .unit = "row", .done = 5, .per_second = 0.25}),
            "rows 5  4.0 s/row");
  EXPECT_THAT(progress_line_text({.label = "x", .done = 1, .values = {{"kl", 0.0 / 0.0}}}),
              HasSubstr("kl -"));
}

TEST(ProgressText, CutsBetweenCharacters) {
  EXPECT_EQ(progress_bar_text({.label = "äöü", .done = 1}, 2), "äö");
}

}  // namespace
}  // namespace antisd::inline run
