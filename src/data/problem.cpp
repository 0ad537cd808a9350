#include "data/problem.h"

#include <cmath>

#include "core/error.h"
#include "core/nearest.h"
#include "core/utf8.h"
#include "data/code_rows.h"
#include "data/column_aliases.h"

namespace antisd::inline data {
namespace {

const std::vector<std::string>& native_columns() {
  static const std::vector<std::string> names = {"problem", "prompt", "answer", "solution",
                                                 "id",      "source", "tests"};
  return names;
}

// Names that may stand for `problem` and `answer` but often mean something else: suggestions only.
const std::vector<std::string>& likely_names(const std::string& column) {
  static const std::vector<std::string> problems = {"input", "text", "statement"};
  static const std::vector<std::string> answers = {"target", "label", "solution", "output"};
  static const std::vector<std::string> none;
  return column == "problem" ? problems : column == "answer" ? answers : none;
}

Json* member(Json& value, const std::string& name) {
  if (value.is_object()) {
    const auto found = value.find(name);
    return found == value.end() ? nullptr : &*found;
  }
  if (value.is_array() && !name.empty() && name.size() < 6 &&
      name.find_first_not_of("0123456789") == std::string::npos) {
    const std::size_t index = std::stoul(name);
    return index < value.size() ? &value[index] : nullptr;
  }
  return nullptr;
}

Json* find_path(Json& row, const std::string& path) {
  if (Json* whole = member(row, path)) return whole;  // a column name with a dot in it
  Json* value = &row;
  for (std::size_t start = 0; value != nullptr && start <= path.size();) {
    const std::size_t dot = std::min(path.find('.', start), path.size());
    value = member(*value, path.substr(start, dot - start));
    start = dot + 1;
  }
  return value;
}

std::string suggest_column(const Json& row, const std::string& column) {
  for (const std::string& name : likely_names(column)) {
    if (row.contains(name)) return name;
  }
  return "THEIR_COLUMN";
}

[[noreturn]] void throw_missing(const Json& row, const std::string& column,
                                const std::string& where) {
  throw InputError(fmt::format("no column '{}'; the row has: {}", column, list_columns(row)),
                   {.where = where,
                    .remedy = fmt::format("name it in the config: data.map = {{{} = \"{}\"}}",
                                          column, suggest_column(row, column))});
}

[[noreturn]] void throw_type(const std::string& column, const Json& value,
                             const std::string& expected, const std::string& where) {
  throw InputError(
      fmt::format("'{}' is {} {}, not {}", column,
                  value.is_array() || value.is_object() ? "an" : "a", value.type_name(), expected),
      {.where = where,
       .remedy = fmt::format("write {} there, or name another column in data.map", expected)});
}

std::string take_text(const std::string& column, Json& value, const std::string& where) {
  if (!value.is_string()) throw_type(column, value, "text", where);
  return std::move(value.get_ref<std::string&>());
}

std::string number_text(const std::string& column, const Json& value, const std::string& where) {
  // An integer beyond 64 bits was parsed as floating-point: its digits are lost.
  if (value.is_number_float() && std::fabs(value.get<double>()) >= 0x1p63) {
    throw InputError(fmt::format("'{}' is a number too large to be read exactly", column),
                     {.where = where, .remedy = "write it as text, in quotes"});
  }
  return value.dump();
}

// Some files wrap the answer in a list, or in a list's text: ["34"]. An interval like [12,28] is an
// answer, so only a list of one string is unwrapped.
std::string unwrapped_answer(std::string text) {
  if (!text.starts_with("[\"")) return text;
  try {
    const Json list = parse_json(text, "");
    if (list.is_array() && list.size() == 1 && list[0].is_string()) return list[0];
  } catch (const InputError&) {  // not a list
  }
  return text;
}

std::string answer_text(Json& value, bool verl, const std::string& where) {
  if (value.is_null()) return "";
  if (value.is_string()) {
    std::string text = take_text("answer", value, where);
    return verl ? unwrapped_answer(std::move(text)) : text;
  }
  if (value.is_number()) return number_text("answer", value, where);
  if (value.is_array() && value.size() == 1 && (value[0].is_string() || value[0].is_number())) {
    return answer_text(value[0], false, where);
  }
  throw_type("answer", value, "text or a number", where);
}

// A verl row with a column `answer` beside its ground truth must not say two things.
void check_same_answer(Json& row, const Json& answer, const std::string& where) {
  const auto text_of = [&](Json value) {
    const std::string text = answer_text(value, /*verl=*/true, where);
    return answer_after_marks(text).value_or(text);
  };
  const Json& truth = *find_path(row, "reward_model.ground_truth");
  if (!truth.is_string() && !truth.is_number()) return;
  const std::string ours = text_of(answer), theirs = text_of(truth);
  if (ours == theirs) return;
  const auto shown = [](const std::string& text) {
    return replace_invalid_utf8(text.substr(0, 60));  // the cut may be inside a character
  };
  throw InputError(fmt::format("'answer' is '{}' and 'reward_model.ground_truth' is '{}'",
                               shown(ours), shown(theirs)),
                   {.where = where,
                    .remedy = "choose: data.map = {answer = \"reward_model.ground_truth\"} (--map "
                              "answer=reward_model.ground_truth)"});
}

std::vector<ChatMessage> read_messages(Json& list, const std::string& where) {
  std::vector<ChatMessage> messages;
  for (Json& entry : list) {
    Json* role = member(entry, "role");
    Json* content = member(entry, "content");
    if (role == nullptr || content == nullptr || !role->is_string() || !content->is_string()) {
      throw InputError("a message of the prompt is not {\"role\": text, \"content\": text}",
                       {.where = where, .remedy = "write the prompt as text or as chat messages"});
    }
    for (const auto& [key, value] : entry.items()) {
      if (key != "role" && key != "content" && !value.is_null()) {
        throw InputError(fmt::format("a message of the prompt has '{}', which is not used", key),
                         {.where = where, .remedy = "leave only role and content"});
      }
    }
    messages.push_back(
        {std::move(role->get_ref<std::string&>()), std::move(content->get_ref<std::string&>())});
  }
  if (messages.empty()) {
    throw InputError("the prompt is an empty list", {.where = where, .remedy = "remove the row"});
  }
  return messages;
}

}  // namespace

std::string prompt_text(const Problem& problem) {
  if (problem.messages.empty()) return problem.problem;
  std::string text;
  for (const ChatMessage& message : problem.messages) {
    if (message.role != "user") continue;
    if (!text.empty()) text += '\n';
    text += message.content;
  }
  return text;
}

Json to_row(const Problem& problem) {
  Json row = {{"id", problem.id}};
  if (problem.messages.empty()) {
    row["problem"] = problem.problem;
  } else {
    Json& messages = row["prompt"] = Json::array();
    for (const ChatMessage& message : problem.messages) {
      messages.push_back({{"role", message.role}, {"content", message.content}});
    }
  }
  if (problem.tests.is_null() || !problem.answer.empty()) row["answer"] = problem.answer;
  if (problem.solution) row["solution"] = *problem.solution;
  if (!problem.tests.is_null()) row["tests"] = problem.tests;
  row["source"] = problem.source;
  return row;
}

const Json* find_column(const Json& row, const std::string& column) {
  return find_path(const_cast<Json&>(row), column);  // which only reads it
}

bool is_verl_row(const Json& row) {
  const auto reward = row.find("reward_model");
  return reward != row.end() && reward->is_object() && reward->contains("ground_truth");
}

std::string list_columns(const Json& row) {
  constexpr int kMaxNames = 40;
  constexpr std::size_t kMaxLength = 60;
  std::string text;
  int count = 0;
  const auto add = [&](const std::string& name) {
    if (++count > kMaxNames) return;
    // The cut may be inside a character.
    text += (text.empty() ? "" : ", ") + replace_invalid_utf8(name.substr(0, kMaxLength));
  };
  for (const auto& [key, value] : row.items()) {
    if (!value.is_object() || value.empty()) add(key);
    if (!value.is_object()) continue;
    for (const auto& [inner, ignored] : value.items())
      add(key + "." + inner);
  }
  if (count > kMaxNames) text += fmt::format(", and {} more", count - kMaxNames);
  return text.empty() ? "none" : text;
}

ProblemParser::ProblemParser(ColumnMap map, bool require_answer, bool keep_row)
    : map_(std::move(map)), require_answer_(require_answer), keep_row_(keep_row) {
  for (const auto& [ours, theirs] : map_) {
    const std::vector<std::string>& names = native_columns();
    if (std::find(names.begin(), names.end(), ours) != names.end()) continue;
    const std::string near = nearest_name(ours, names);
    throw InputError(fmt::format("'{}' is not one of our columns", ours),
                     {.where = "data.map",
                      .remedy = near.empty() ? "use problem, answer, solution, id, source or tests"
                                             : fmt::format("did you mean '{}'?", near)});
  }
  if (map_.contains("problem") && map_.contains("prompt")) {
    throw InputError("both 'problem' and 'prompt' are mapped",
                     {.where = "data.map", .remedy = "map one of them"});
  }
}

// The column's value, or null if the row has none; a mapped column is required.
Json* ProblemParser::find(Json& row, const std::string& column, const std::string& where) const {
  const auto mapped = map_.find(column);
  if (mapped == map_.end()) return member(row, column);
  Json* value = find_path(row, mapped->second);
  if (value != nullptr) return value;
  throw InputError(fmt::format("no column '{}', which data.map gives for '{}'; the row has: {}",
                               mapped->second, column, list_columns(row)),
                   {.where = where, .remedy = "correct data.map"});
}

void ProblemParser::note(const std::string& what) {
  std::string text = stem_ + ": " + what;
  if (std::find(notes_.begin(), notes_.end(), text) == notes_.end())
    notes_.push_back(std::move(text));
}

// The column under a name that other data sets use, if data.map says nothing.
Json* ProblemParser::find_usual(Json& row, const std::string& column, const std::string& where) {
  const std::optional<std::string> name = find_alias(row, column, where);
  if (!name) return nullptr;
  note(fmt::format("{} is read as {}", *name, column));
  return member(row, *name);
}

void ProblemParser::read_prompt(Json& row, bool verl, const std::string& where, Problem& problem) {
  const bool prompt_first = map_.contains("prompt") || (verl && !map_.contains("problem"));
  Json* value = find(row, prompt_first ? "prompt" : "problem", where);
  if (value == nullptr) value = find(row, prompt_first ? "problem" : "prompt", where);
  if (value == nullptr) value = find_usual(row, "problem", where);
  if (value == nullptr) throw_missing(row, "problem", where);
  if (value->is_array()) {
    problem.messages = read_messages(*value, where);
    return;
  }
  if (!value->is_string()) throw_type("problem", *value, "text or a list of chat messages", where);
  problem.problem = std::move(value->get_ref<std::string&>());
  if (problem.problem.find_first_not_of(" \t\r\n") == std::string::npos) {
    throw InputError("the problem is empty", {.where = where, .remedy = "remove the row"});
  }
}

// The answer that a solution ends with, where no column holds it alone.
void ProblemParser::read_stated_answer(Problem& problem) {
  if (const auto answer = answer_after_marks(problem.answer)) {
    if (!problem.solution) problem.solution = problem.answer;
    problem.answer = *answer;
    note("the text behind #### is read as answer");
  }
}

void ProblemParser::read_answer(Json& row, bool verl, const std::string& where, Problem& problem) {
  Json* value = find(row, "answer", where);
  if (value != nullptr && verl && !map_.contains("answer")) check_same_answer(row, *value, where);
  bool from_verl = false;
  if (value == nullptr && verl) {
    value = find_path(row, "reward_model.ground_truth");
    from_verl = true;
    // As in RLVR-Decomposed: {"question", "solution", "target"}.
    if (value->is_object() && value->contains("target")) {
      Json* solution = member(*value, "solution");
      if (solution != nullptr && solution->is_string() && !problem.solution)
        problem.solution = take_text("solution", *solution, where);
      value = member(*value, "target");
    }
  }
  const bool mapped = map_.contains("answer");
  if (value == nullptr && !mapped && problem.tests.is_null())
    value = find_usual(row, "answer", where);
  if (value != nullptr) {
    problem.answer = answer_text(*value, from_verl, where);
    if (!mapped) read_stated_answer(problem);
    return;
  }
  if (!problem.tests.is_null()) return;
  if (problem.solution) {
    if (const auto answer = boxed_answer(*problem.solution)) {
      problem.answer = *answer;
      note("\\boxed{} of solution is read as answer");
      return;
    }
  }
  if (require_answer_) throw_missing(row, "answer", where);
}

std::string ProblemParser::read_id(Json& row, bool verl, const std::string& where,
                                   const std::string& stem, std::int64_t number) const {
  Json* value = find(row, "id", where);
  const bool own = value != nullptr && !value->is_null();
  if (!own && verl) value = find_path(row, "extra_info.index");
  if (value == nullptr || value->is_null()) return fmt::format("{}-{}", stem, number);
  if (value->is_number_integer()) {
    // verl's index counts within a file; the file's name makes it unique over files.
    return own ? value->dump() : fmt::format("{}-{}", stem, value->dump());
  }
  return take_text("id", *value, where);
}

Problem ProblemParser::parse(Json& row, const std::string& where, const std::string& stem,
                             std::int64_t number) {
  stem_ = stem;
  if (map_.empty() && is_raw_code_row(row)) {
    throw InputError("a raw row of a code data set; the trainer needs native tests",
                     {.where = where,
                      .remedy = fmt::format("convert it first: antisd data convert FILE {}.jsonl",
                                            stem + "_native")});
  }
  const bool verl = is_verl_row(row);
  Problem problem;
  if (keep_row_) problem.row = row;  // before values are moved out of it
  problem.id = read_id(row, verl, where, stem, number);
  if (Json* tests = find(row, "tests", where); tests != nullptr && !tests->is_null()) {
    problem.tests = checked_tests(std::move(*tests), where);
  }
  if (Json* solution = find(row, "solution", where); solution != nullptr && !solution->is_null()) {
    Json copy = *solution;  // data.map may take the answer from the same column
    problem.solution = take_text("solution", copy, where);
  }
  read_answer(row, verl, where, problem);
  read_prompt(row, verl, where, problem);
  Json* source = find(row, "source", where);
  if (source == nullptr && verl) source = member(row, "data_source");
  problem.source =
      source == nullptr || source->is_null() ? stem : take_text("source", *source, where);
  return problem;
}

}  // namespace antisd::inline data
