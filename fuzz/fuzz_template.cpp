// Any bytes as a template, rendered with a fixed conversation: InputError or a text, nothing else.
#include <cstddef>
#include <cstdint>

#include "core/error.h"
#include "text/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using antisd::Json;
  static const Json kVariables = {
      {"messages",
       {{{"role", "system"}, {"content", "Be brief."}},
        {{"role", "user"}, {"content", "Grüße, 東京 <tag> it's"}},
        {{"role", "assistant"},
         {"content", nullptr},
         {"tool_calls",
          {{{"function", {{"name", "f"}, {"arguments", {{"x", 1.5}, {"y", {1, 2}}}}}}}}}},
        {{"role", "tool"}, {"content", "<think>\na\n</think>\nb"}}}},
      {"tools",
       {{{"type", "function"}, {"function", {{"name", "f"}, {"parameters", {{"a", 1}}}}}}}},
      {"add_generation_prompt", true},
      {"bos_token", "<s>"},
      // read by the seeds
      {"name", "World"},
      {"text", "one two  three"},
      {"lines", "a\nb\n\nc"},
      {"uni", "Grüße, 東京 🗼!"},
      {"list", {3, 1, 2}},
      {"words", {"b", "A", "c"}},
      {"nested", {{1, 2}, {3, {4}}}},
      {"record", {{"a", 1}, {"b", {true, nullptr}}, {"c", {{"d", "x"}}}}},
      {"people",
       {{{"name", "Ann"}, {"age", 30}, {"tag", "x"}},
        {{"name", "bob"}, {"age", 25}, {"tag", "y"}}}},
      {"yes", true},
      {"number", 7},
      {"eos_token", "</s>"},
  };
  const antisd::TemplateLimits limits{
      .steps = 20'000, .output_bytes = std::size_t{1} << 20, .memory_bytes = std::size_t{4} << 20};
  try {
    const antisd::ChatTemplate chat(std::string(reinterpret_cast<const char*>(data), size), "fuzz",
                                    limits);
    (void)chat.render(kVariables);
  } catch (const antisd::InputError&) {
  }
  return 0;
}
