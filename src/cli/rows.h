// The small tools' common shape: a stream of JSON rows in, one row out for each, in the same order.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/error.h"
#include "io/json.h"

namespace antisd::inline cli {

struct RowStreamOptions {
  std::string file = "-";  // "-" is standard input
  bool keep_going = false;
};

// Adds FILE and --keep-going.
void add_row_stream_options(CLI::App& app, RowStreamOptions& options);

// Writes work(row) for every row, with the row's id carried through. A bad row stops with
// "FILE:LINE: ..." after the rows before it are out; with keep_going it becomes
// {"id":..,"error":".."}.
// With several workers, rows are worked on at the same time and still come out in order.
int run_rows(const RowStreamOptions& options, const std::function<Json(const Json& row)>& work,
             int workers = 1);

// Work that takes many rows at once.
struct RowBatches {
  // Keeps what the row asks for and returns its size. An InputError refuses the row: it is not
  // kept.
  std::function<std::int64_t(const Json& row)> keep;
  // Results of the `count` oldest rows kept, in order; they are no longer kept then.
  std::function<std::vector<Json>(std::size_t count)> work;
  std::int64_t limit = 0;  // of the sizes worked on at once; a larger row goes alone
};

// The same contract as run_rows. Rows that come slowly through a pipe are answered when it pauses.
int run_row_batches(const RowStreamOptions& options, const RowBatches& batches);

// `result` with the row's id in front, where it has one.
Json with_id(const Json& row, Json result);
// The row's error with the row's place in front.
[[noreturn]] void throw_placed(const InputError& error, const std::string& where);

// Fields of a row, with errors that name the field and what is wrong with it.
const Json& required_field(const Json& row, const std::string& name);
const std::string& required_string(const Json& row, const std::string& name);
std::vector<std::int32_t> ids_of(const Json& row, const std::string& name);  // token ids, from 0 up

}  // namespace antisd::inline cli
