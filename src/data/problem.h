// One problem as the trainer sees it, and how it comes out of a row.
//
// Native rows:  {"problem" | "prompt": text or chat list, "answer", "solution"?, "id"?, "source"?,
//                "tests"?}
// verl's rows:  {"data_source", "prompt": chat list, "ability",
//                "reward_model": {"ground_truth"}, "extra_info": {"index"}}
// Any other names come through a column map: {"answer": "reward_model.target"}.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "io/json.h"

namespace antisd::inline data {

struct ChatMessage {
  std::string role, content;
  bool operator==(const ChatMessage&) const = default;
};

struct Problem {
  std::string id;                     // the row's own, else "<file stem>-<row number from 1>"
  std::vector<ChatMessage> messages;  // where the prompt is a chat list already: taken as it is
  std::string problem;                // plain text otherwise
  std::string answer;                 // may be empty
  std::optional<std::string> solution;
  std::string source;  // the row's own, else the file's stem
  Json tests;          // of code rows, as `grade code` takes them; null otherwise
};

// The text that says what the problem is: `problem`, or what the user says in `messages`.
std::string prompt_text(const Problem& problem);

// The problem as a native row.
Json to_row(const Problem& problem);

// Our column -> theirs; a dot steps into an object ("extra_info.index") or a list ("prompt.0").
using ColumnMap = std::map<std::string, std::string>;

// Whether a row has verl's columns.
bool is_verl_row(const Json& row);

// `tests` of a native row checked, without null members; InputError naming `where` otherwise. Text
// (as Parquet files hold them) is parsed.
Json checked_tests(Json tests, const std::string& where);

// The row's column names, those of inner objects dotted, for a message: "id, reward_model.style".
std::string list_columns(const Json& row);

class ProblemParser {
 public:
  // InputError for a map with an unknown column. `require_answer`: a row must have an
  // answer column or tests; it may still be empty.
  explicit ProblemParser(ColumnMap map = {}, bool require_answer = true);

  // Takes what it needs out of `row`. `stem` and `number` make the id of a row that has none.
  Problem parse(Json& row, const std::string& where, const std::string& stem,
                std::int64_t number) const;

 private:
  Json* find(Json& row, const std::string& column, const std::string& where) const;
  void read_prompt(Json& row, bool verl, const std::string& where, Problem& problem) const;
  void read_answer(Json& row, bool verl, const std::string& where, Problem& problem) const;
  std::string read_id(Json& row, bool verl, const std::string& where, const std::string& stem,
                      std::int64_t number) const;

  ColumnMap map_;
  bool require_answer_;
};

}  // namespace antisd::inline data
