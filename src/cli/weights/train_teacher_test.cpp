// `train` with another model as the teacher, as a user runs it.
#include "cli/weights/train_testing.h"
#include "trainer/other_teacher.h"

namespace antisd::inline cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Outcome;

class TrainTeacher : public testing::TrainTest {
 protected:
  TrainTeacher() { testing::make_other_teacher(folder_ / "teacher"); }
  std::string opd(const std::string& teacher = "teacher") const {
    return fmt::format("method.name=opd method.teacher.path={} ", path(teacher));
  }
};

TEST_F(TrainTeacher, AnotherTeacherStopsAResumedRunAndBothAreNamed) {
  const Outcome first = train("run", opd() + "train.steps=2 checkpoint.every=1");
  ASSERT_EQ(first.status, 0) << first.err;
  testing::make_other_teacher(folder_ / "second", 10);
  const Outcome other =
      train("run", opd("second") + "train.steps=4 --resume --allow method.teacher.path");
  EXPECT_EQ(other.status, 2);
  EXPECT_THAT(other.err, AllOf(HasSubstr(path("teacher")), HasSubstr(path("second"))));
  const Outcome same = train("run", opd() + "train.steps=4 --resume");
  EXPECT_EQ(same.status, 0) << same.err;
  EXPECT_EQ(metrics("run").size(), 4u);
}

TEST_F(TrainTeacher, AnotherVocabularyIsRefusedBeforeAnythingIsLoaded) {
  std::string tokenizer = read_file(folder_ / "teacher/tokenizer.json");
  tokenizer.replace(tokenizer.find("\"lose\""), 6, "\"loss\"");
  write("teacher/tokenizer.json", tokenizer);
  for (const char* more : {"", "--dry-run"}) {
    const Outcome outcome = train("run", opd() + more);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("method.teacher.path"), HasSubstr(path("teacher")),
                                   HasSubstr(path("model")), HasSubstr("token 13 is 'loss'"),
                                   HasSubstr("a teacher of the student's family")));
  }
}

TEST_F(TrainTeacher, TheDryRunShowsTheTeacherAndItsPrompt) {
  const Outcome outcome = train("run", opd() + "method.opd.divergence=jsd --dry-run");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("3 layers, width 24"), HasSubstr("shown its prompt"),
                                 HasSubstr("teacher's states")));
}

}  // namespace
}  // namespace antisd::inline cli
