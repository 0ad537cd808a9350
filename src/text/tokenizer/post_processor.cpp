#include "text/tokenizer/post_processor.h"

#include <fmt/format.h>

#include "text/tokenizer/json_fields.h"

namespace antisd::inline text {
namespace {

TokenId checked_id(const SortedJson& value, const JsonFields& fields) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMaxTokenId) {
    fields.fail(fmt::format("{} is not an id", value.dump()),
                fmt::format("use a whole number up to {}", kMaxTokenId));
  }
  return value.get<TokenId>();
}

// ["</s>", 2]
TokenId id_of_pair(const JsonFields& fields, std::string_view key) {
  const SortedJson& pair = fields.array(key);
  if (pair.size() != 2) {
    fields.fail(fmt::format("\"{}\" is not a token and its id", key), "fix the file");
  }
  return checked_id(pair[1], fields);
}

// "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}, ...]
PostProcessor from_template(const JsonFields& fields) {
  fields.allow({"type", "single", "pair", "special_tokens"});
  PostProcessor result;
  int sequences = 0;
  const JsonFields special(fields.get("special_tokens"), fields.where("special_tokens"));
  for (const SortedJson& part : fields.array("single")) {
    const JsonFields item(part, fields.where("single"));
    if (item.has("Sequence")) {
      ++sequences;
      continue;
    }
    const JsonFields token(item.get("SpecialToken"), fields.where("single") + ".SpecialToken");
    const std::string name = token.string("id");
    const JsonFields definition(special.get(name), special.where(name));
    for (const SortedJson& id : definition.array("ids")) {
      (sequences == 0 ? result.before : result.behind).push_back(checked_id(id, definition));
    }
  }
  if (sequences != 1) {
    fields.fail(fmt::format("\"single\" holds {} sequences", sequences), "use exactly one");
  }
  return result;
}

}  // namespace

PostProcessor PostProcessor::from_json(const SortedJson& value, const std::string& where) {
  PostProcessor result;
  for (const auto& [member, member_where] : flatten_sequence(value, "processors", where)) {
    const JsonFields fields(member, member_where);
    const std::string type = fields.string("type");
    PostProcessor step;
    if (type == "TemplateProcessing") {
      step = from_template(fields);
    } else if (type == "RobertaProcessing" || type == "BertProcessing") {
      step.before = {id_of_pair(fields, "cls")};
      step.behind = {id_of_pair(fields, "sep")};
    } else if (type != "ByteLevel") {  // ByteLevel only changes offsets
      fields.fail(fmt::format("the post-processor {} is not supported", type),
                  "known are TemplateProcessing, ByteLevel, RobertaProcessing, BertProcessing and "
                  "Sequence");
    }
    result.before.insert(result.before.begin(), step.before.begin(), step.before.end());
    result.behind.insert(result.behind.end(), step.behind.begin(), step.behind.end());
  }
  return result;
}

}  // namespace antisd::inline text
