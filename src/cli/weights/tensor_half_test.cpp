// Every command that the program leaves to its tensor half is there.

#include "cli/command.h"
#include "cli/command_testing.h"

namespace antisd::inline cli {
namespace {

class TensorCommands : public testing::CommandTest {};

TEST_F(TensorCommands, AreFoundInTheLibrary) {
  int count = 0;
  for (const Command& command : all_commands()) {
    if (command.add != kInTensorHalf) continue;
    const testing::Outcome help = run(std::string(command.name) + " --help");
    EXPECT_EQ(help.status, 0) << command.name << ": " << help.err;
    EXPECT_THAT(help.out, ::testing::HasSubstr(command.help));
    ++count;
  }
  EXPECT_GE(count, 10);
}

}  // namespace
}  // namespace antisd::inline cli
