// `generate --chat`: a conversation on the terminal, through the model's chat template.
#pragma once

#include "cli/prompt_reader.h"
#include "inference/rollout_engine.h"
#include "text/text_stream.h"

namespace antisd::inline cli {

struct ChatParts {
  PromptReader& prompts;
  const StopStrings& stops;
  const CausalLm& model;
  RolloutEngine& engine;
  RolloutOptions rollout;  // its seed, with the number of the turn, gives the random numbers
};

// Reads messages from standard input, one per line, and writes answers as they come; /clear starts
// anew, /exit and the end of the input end. ^C stops an answer; without one, a second ^C ends.
// Returns the exit status.
int run_chat(const ChatParts& parts);

}  // namespace antisd::inline cli
