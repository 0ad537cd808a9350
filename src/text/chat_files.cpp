#include "text/chat_files.h"

#include "io/atomic_file.h"
#include "io/json.h"

namespace antisd::inline text {

namespace fs = std::filesystem;

bool has_chat_template(const fs::path& model) {
  if (fs::exists(model / "chat_template.jinja")) return true;
  for (const char* name : {"tokenizer_config.json", "chat_template.json"}) {
    if (!fs::exists(model / name)) continue;
    const Json file = parse_json(read_file(model / name), (model / name).string());
    if (file.is_object() && file.contains("chat_template")) return true;
  }
  return false;
}

}  // namespace antisd::inline text
