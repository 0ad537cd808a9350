// One problem as the trainer sees it, and how to parse it from a row.
//
// Native rows:  {"problem" | "prompt": text or chat list, "answer", "solution"?, "id"?, "source"?,
//                "tests"?}
// verl's rows:  {"data_source", "prompt": chat list, "ability",
//                "reward_model": {"ground_truth"}, "extra_info": {"index"}}
// Rows with the usual names of other data sets (question, final_answer, ...: data/column_aliases.h)
// are read too, and the parser says which column it took. All others need a column map:
// {"answer": "reward_model.target"}.
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
  std::vector<ChatMessage> messages;  // if the prompt is a chat list: used as it is
  std::string problem;                // plain text otherwise
  std::string answer;                 // may be empty
  std::optional<std::string> solution;
  std::string source;  // the row's own, else the file's stem
  Json tests;          // of code rows, as `grade code` takes them; null otherwise
  Json row;            // the whole row as the file has it, if the parser was told to keep it
};

// The problem's text: `problem`, or the user's text in `messages`.
std::string prompt_text(const Problem& problem);

// The problem as a native row.
Json to_row(const Problem& problem);

// Our column -> the file's; a dot selects a member ("extra_info.index") or list element
// ("prompt.0").
using ColumnMap = std::map<std::string, std::string>;

// The value of a column of a row, by its name as in ColumnMap; null if the row has none.
const Json* find_column(const Json& row, const std::string& column);

// Whether a row has verl's columns.
bool is_verl_row(const Json& row);

// `tests` of a native row, checked and without null members; InputError naming `where` otherwise.
// Text (as in Parquet files) is parsed.
Json checked_tests(Json tests, const std::string& where);

// The row's column names for a message, inner ones with dots: "id, reward_model.style".
std::string list_columns(const Json& row);

class ProblemParser {
 public:
  // InputError for a map with an unknown column. `require_answer`: a row must have an answer column
  // or tests; the answer may be empty. `keep_row`: Problem::row is filled, for a reward that gets
  // every column.
  explicit ProblemParser(ColumnMap map = {}, bool require_answer = true, bool keep_row = false);

  // Moves values out of `row`. `stem` and `number` form the id of a row without one.
  Problem parse(Json& row, const std::string& where, const std::string& stem, std::int64_t number);

  // What was read from columns of other names, each once: "gsm8k: question is read as problem".
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  Json* find(Json& row, const std::string& column, const std::string& where) const;
  Json* find_usual(Json& row, const std::string& column, const std::string& where);
  void read_prompt(Json& row, bool verl, const std::string& where, Problem& problem);
  void read_answer(Json& row, bool verl, const std::string& where, Problem& problem);
  void read_stated_answer(Problem& problem);
  void note(const std::string& what);
  std::string read_id(Json& row, bool verl, const std::string& where, const std::string& stem,
                      std::int64_t number) const;

  ColumnMap map_;
  bool require_answer_;
  bool keep_row_;
  std::string stem_;  // of the row that is being read
  std::vector<std::string> notes_;
};

}  // namespace antisd::inline data
