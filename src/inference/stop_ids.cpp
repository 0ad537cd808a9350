#include "inference/stop_ids.h"

#include <limits>

#include "core/error.h"
#include "io/atomic_file.h"
#include "io/json.h"

namespace antisd::inline inference {

std::vector<std::int32_t> read_stop_ids(const std::filesystem::path& model_directory) {
  for (const char* name : {"generation_config.json", "config.json"}) {
    const std::filesystem::path file = model_directory / name;
    if (!std::filesystem::exists(file)) continue;
    const Json config = parse_json(read_file(file), file.string());
    if (!config.is_object() || !config.contains("eos_token_id")) continue;
    const Json& field = config["eos_token_id"];
    if (field.is_null()) continue;
    std::vector<std::int32_t> ids;
    for (const Json& id : field.is_array() ? field : Json::array({field})) {
      if (!id.is_number_integer() || id < 0 || id > std::numeric_limits<std::int32_t>::max()) {
        throw InputError(fmt::format("'eos_token_id' holds {}", id.dump()),
                         {.where = file.string(), .remedy = "give an id or a list of ids"});
      }
      ids.push_back(id.get<std::int32_t>());
    }
    return ids;
  }
  return {};
}

}  // namespace antisd::inline inference
